import java.io.BufferedOutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/** What Java's own clients say of a topic, printed so that it can be read back without doubt. */
public final class Judge {
    private static final PrintStream out = new PrintStream(new BufferedOutputStream(System.out, 1 << 16), false, StandardCharsets.UTF_8);

    public static void main(String[] args) throws Exception {
        switch (args[0]) {
            case "consume" -> consume(args[1], args[2], args[3]);
            default -> throw new IllegalArgumentException(args[0]);
        }
        out.println("end");
        out.flush();
    }

    /** Prints the topic from its start to the end it has now, for this isolation level. */
    private static void consume(String brokers, String topic, String isolation) {
        Properties config = new Properties();
        config.put("bootstrap.servers", brokers);
        config.put("isolation.level", isolation);
        config.put("enable.auto.commit", "false");
        config.put("auto.offset.reset", "none");
        config.put("allow.auto.create.topics", "false");
        try (KafkaConsumer<byte[], byte[]> consumer =
                new KafkaConsumer<>(config, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            List<TopicPartition> all = consumer.partitionsFor(topic).stream()
                    .map(p -> new TopicPartition(topic, p.partition()))
                    .toList();
            consumer.assign(all);
            consumer.seekToBeginning(all);
            Map<TopicPartition, Long> ends = consumer.endOffsets(all);
            while (all.stream().anyMatch(p -> consumer.position(p) < ends.get(p))) {
                for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis(200))) {
                    if (record.offset() < ends.get(new TopicPartition(topic, record.partition()))) {
                        print(record);
                    }
                }
            }
        }
    }

    /** Tab-separated: partition, offset, timestamp, key, value, then name and value of each header. */
    private static void print(ConsumerRecord<byte[], byte[]> record) {
        out.print(record.partition() + "\t" + record.offset() + "\t" + record.timestamp() + "\t" + text(record.key()) + "\t" + text(record.value()));
        for (Header header : record.headers()) {
            out.print("\t" + text(header.key().getBytes(StandardCharsets.UTF_8)) + "\t" + text(header.value()));
        }
        out.print("\n");
    }

    /** Base64; null is a minus sign, which Base64 does not have. */
    private static String text(byte[] bytes) {
        return bytes == null ? "-" : Base64.getEncoder().encodeToString(bytes);
    }
}
