import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.ResultSet;

/** Prints each table of a PostgreSQL database, each row as a line of JSON behind the table's name, and last "end". */
public final class Rows {
    public static void main(String[] args) throws Exception {
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        try (Connection database = DriverManager.getConnection(args[0])) {
            ResultSet tables = database.createStatement().executeQuery(
                "select table_name from information_schema.tables where table_schema = 'public'");
            while (tables.next()) {
                String table = tables.getString(1);
                ResultSet rows = database.createStatement().executeQuery("select row_to_json(t) from \"" + table + "\" t");
                while (rows.next()) {
                    out.println(table + "\t" + rows.getString(1).replace("\n", " "));
                }
            }
        }
        out.println("end");
        out.flush();
    }
}
