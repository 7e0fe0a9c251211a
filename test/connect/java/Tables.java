import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.iceberg.Table;
import org.apache.iceberg.catalog.Namespace;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.data.IcebergGenerics;
import org.apache.iceberg.data.Record;
import org.apache.iceberg.hadoop.HadoopCatalog;
import org.apache.iceberg.io.CloseableIterable;
import org.apache.iceberg.types.Types;

/**
 * Prints the newest state of each object in the Iceberg tables of a warehouse that Debezium's changes were appended to:
 * a line of JSON behind the resource's name with "iceberg_" before it, and last "end".
 */
public final class Tables {
    private static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] args) throws Exception {
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        HadoopCatalog catalog = new HadoopCatalog(new Configuration(), args[0]);
        print(catalog, Namespace.empty(), out);
        out.println("end");
        out.flush();
    }

    private static void print(HadoopCatalog catalog, Namespace namespace, PrintStream out) throws Exception {
        for (Namespace child : catalog.listNamespaces(namespace)) {
            for (TableIdentifier table : catalog.listTables(child)) {
                if (!catalog.tableExists(table)) {
                    continue; // it is being made
                }
                String group = String.join("_", child.levels());
                print(catalog.loadTable(table), "iceberg_" + table.name() + (group.equals("core") ? "" : "_" + group), out);
            }
            print(catalog, child, out);
        }
    }

    private static void print(Table table, String name, PrintStream out) throws Exception {
        Map<String, Record> newest = new HashMap<>();
        try (CloseableIterable<Record> rows = IcebergGenerics.read(table).build()) {
            for (Record row : rows) {
                newest.merge(cdc(row, "key").toString(), row, (a, b) -> (long) cdc(a, "offset") > (long) cdc(b, "offset") ? a : b);
            }
        }
        for (Record row : newest.values()) {
            if (!cdc(row, "op").equals("D")) {
                out.println(name + "\t" + json(row));
            }
        }
    }

    private static Object cdc(Record row, String field) {
        return ((Record) row.getField("_cdc")).getField(field);
    }

    /** A column's text is JSON where an object or a list is meant. */
    private static JsonNode json(Record row) throws Exception {
        ObjectNode all = JSON.createObjectNode();
        for (Types.NestedField column : row.struct().fields()) {
            Object value = row.getField(column.name());
            if (value instanceof Record) {
                continue;
            }
            boolean nested = value instanceof String text && (text.startsWith("{") || text.startsWith("["));
            all.set(column.name(), nested ? JSON.readTree((String) value) : JSON.valueToTree(value));
        }
        Record key = (Record) cdc(row, "key");
        all.put("namespace", (String) key.getField("namespace"));
        return all.put("name", (String) key.getField("name"));
    }
}
