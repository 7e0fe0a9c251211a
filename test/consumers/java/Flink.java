import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.table.api.EnvironmentSettings;
import org.apache.flink.table.api.TableEnvironment;
import org.apache.flink.table.api.TableResult;
import org.apache.flink.types.Row;
import org.apache.flink.util.CloseableIterator;

/**
 * A Flink SQL job over topics in Debezium's envelope, as a user would write it: from each topic's start to its present end.
 * Prints every row of the changelog that comes out: its kind (+I, -U, +U, -D) and its columns, tab-separated in Base64.
 */
public final class Flink {
    public static void main(String[] args) throws Exception {
        String brokers = args[0];
        Configuration config = new Configuration();
        config.setString("parallelism.default", "1");
        TableEnvironment env = TableEnvironment.create(
                EnvironmentSettings.newInstance().inStreamingMode().withConfiguration(config).build());
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        for (int i = 1; i < args.length; i++) {
            String table = "t" + i;
            env.executeSql(definition(table, brokers, args[i]));
            print(out, args[i], env.executeSql("SELECT metadata.`namespace`, metadata.name, metadata.uid, metadata.resourceVersion,"
                    + " apiVersion, kind, labels, data, spec, `rules` FROM (SELECT *, metadata.labels AS labels FROM " + table + ")"));
        }
        out.println("end");
        out.flush();
    }

    /** The columns that are read as STRING are JSON texts; Flink keeps what it does not know of an object out. */
    private static String definition(String table, String brokers, String topic) {
        return "CREATE TABLE " + table + " ("
                + "apiVersion STRING, kind STRING,"
                + " metadata ROW<name STRING, `namespace` STRING, uid STRING, resourceVersion STRING, labels STRING>,"
                + " data STRING, spec STRING, `rules` STRING"
                + ") WITH ('connector' = 'kafka', 'topic' = '" + topic + "', 'properties.bootstrap.servers' = '" + brokers + "',"
                + " 'scan.startup.mode' = 'earliest-offset', 'scan.bounded.mode' = 'latest-offset', 'format' = 'debezium-json')";
    }

    private static void print(PrintStream out, String topic, TableResult result) throws Exception {
        try (CloseableIterator<Row> rows = result.collect()) {
            while (rows.hasNext()) {
                Row row = rows.next();
                StringBuilder line = new StringBuilder(topic).append('\t').append(row.getKind().shortString());
                for (int i = 0; i < row.getArity(); i++) {
                    line.append('\t').append(text(row.getField(i)));
                }
                out.println(line);
            }
        }
    }

    /** Base64; null is a minus sign, which Base64 does not have. */
    private static String text(Object value) {
        return value == null ? "-" : Base64.getEncoder().encodeToString(value.toString().getBytes(StandardCharsets.UTF_8));
    }
}
