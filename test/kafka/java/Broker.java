import java.io.FileInputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Properties;

/** Formats the log directory if it is new, then runs the broker: one JVM start instead of two. */
public final class Broker {
    /** Arguments: server.properties, cluster id, further arguments of kafka-storage format. */
    public static void main(String[] args) throws Exception {
        Properties properties = new Properties();
        try (FileInputStream in = new FileInputStream(args[0])) {
            properties.load(in);
        }
        if (!Files.exists(Path.of(properties.getProperty("log.dirs"), "meta.properties"))) {
            List<String> format = new ArrayList<>(List.of("format", "--config", args[0], "--cluster-id", args[1]));
            format.addAll(Arrays.asList(args).subList(2, args.length));
            int code = kafka.tools.StorageTool.execute(format.toArray(new String[0]), System.out);
            if (code != 0) {
                System.exit(code);
            }
        }
        kafka.Kafka.main(new String[] {args[0]});
    }
}
