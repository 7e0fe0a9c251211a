import com.mongodb.client.MongoClient;
import com.mongodb.client.MongoClients;
import com.mongodb.client.MongoDatabase;
import de.bwaldvogel.mongo.MongoServer;
import de.bwaldvogel.mongo.backend.memory.MemoryBackend;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import org.bson.Document;

/**
 * Is a MongoDB in memory where the argument is a port. Else it is the address of one, and what its database "cluster"
 * has is printed: each document in a line behind its collection and its id, and last "end".
 */
public final class Documents {
    public static void main(String[] args) throws Exception {
        if (!args[0].contains(":")) {
            new MongoServer(new MemoryBackend()).bind("127.0.0.1", Integer.parseInt(args[0]));
            return;
        }
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        try (MongoClient client = MongoClients.create(args[0])) {
            MongoDatabase database = client.getDatabase("cluster");
            for (String name : database.listCollectionNames()) {
                for (Document document : database.getCollection(name).find()) {
                    out.println(name + "\t" + document.remove("_id") + "\t" + document.toJson());
                }
            }
        }
        out.println("end");
        out.flush();
    }
}
