import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.table.api.EnvironmentSettings;
import org.apache.flink.table.api.TableEnvironment;
import org.apache.flink.types.Row;
import org.apache.flink.util.CloseableIterator;

/** Executes statements of Flink SQL, and prints the rows of the last one, a query, for as long as there are any. */
public final class Sql {
    public static void main(String[] args) throws Exception {
        Configuration config = new Configuration();
        config.setString("parallelism.default", "1");
        TableEnvironment env = TableEnvironment.create(
                EnvironmentSettings.newInstance().inStreamingMode().withConfiguration(config).build());
        for (int i = 0; i < args.length - 1; i++) {
            env.executeSql(args[i]);
        }
        PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        try (CloseableIterator<Row> rows = env.executeSql(args[args.length - 1]).collect()) {
            while (rows.hasNext()) {
                out.println(rows.next());
            }
        }
    }
}
