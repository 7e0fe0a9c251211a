import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.table.api.EnvironmentSettings;
import org.apache.flink.table.api.TableEnvironment;
import org.apache.flink.types.Row;
import org.apache.flink.util.CloseableIterator;

/**
 * A Flink SQL job over a topic of ConfigMaps in Avro whose schemas a registry has, from the topic's start to its present end.
 * Prints the kind of each row (+I, -U, +U, -D), the object's name, and its columns, in Base64.
 */
public final class FlinkAvro {
    public static void main(String[] args) throws Exception {
        String brokers = args[0];
        String registry = args[1];
        String format = args[2];
        Configuration config = new Configuration();
        config.setString("parallelism.default", "1");
        TableEnvironment env = TableEnvironment.create(
                EnvironmentSettings.newInstance().inStreamingMode().withConfiguration(config).build());
        env.executeSql("CREATE TABLE t (apiVersion STRING, kind STRING,"
                + " metadata ROW<name STRING, `namespace` STRING, uid STRING, resourceVersion STRING>, data MAP<STRING, STRING>"
                + ") WITH ('connector' = 'kafka', 'topic' = '" + args[3] + "', 'properties.bootstrap.servers' = '" + brokers + "',"
                + " 'scan.startup.mode' = 'earliest-offset', 'scan.bounded.mode' = 'latest-offset', 'format' = '" + format + "',"
                + " '" + format + ".url' = '" + registry + "')");
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        try (CloseableIterator<Row> rows = env.executeSql(
                "SELECT metadata.`namespace`, metadata.name, metadata.uid, metadata.resourceVersion, kind, data FROM t").collect()) {
            while (rows.hasNext()) {
                Row row = rows.next();
                out.println(row.getKind().shortString() + "\t" + coded(row.getField(0)) + "/" + coded(row.getField(1)) + "\t" + coded(row.getField(2))
                        + "\t" + coded(row.getField(3)) + "\t" + coded(row.getField(4)) + "\t" + entries((Map<?, ?>) row.getField(5)));
            }
        }
        out.println("end");
        out.flush();
    }

    /** Keys and values; null is a minus sign, which Base64 does not have. */
    private static String entries(Map<?, ?> map) {
        if (map == null) {
            return "-";
        }
        List<String> all = new ArrayList<>();
        new TreeMap<Object, Object>(map).forEach((key, value) -> all.add(coded(key) + ":" + coded(value)));
        return String.join(",", all);
    }

    private static String coded(Object value) {
        return Base64.getEncoder().encodeToString(String.valueOf(value).getBytes(StandardCharsets.UTF_8));
    }
}
