import io.apicurio.registry.serde.avro.AvroKafkaDeserializer;
import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.avro.generic.GenericDatumWriter;
import org.apache.avro.generic.GenericRecord;
import org.apache.avro.io.BinaryEncoder;
import org.apache.avro.io.EncoderFactory;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * Reads topics from their start to their present end with Apicurio's deserialiser. Prints of each record the topic, the
 * key, and what the deserialiser made of the value, written again: its schema and its bytes, in Base64. A minus sign is
 * no value.
 */
public final class Deserialise {
    public static void main(String[] args) throws Exception {
        Map<String, Object> config = new HashMap<>();
        config.put("bootstrap.servers", args[0]);
        config.put("isolation.level", "read_committed");
        config.put("enable.auto.commit", "false");
        config.put("apicurio.registry.url", args[1]);
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        AvroKafkaDeserializer<GenericRecord> values = new AvroKafkaDeserializer<>();
        values.configure(config, false);
        try (KafkaConsumer<byte[], GenericRecord> consumer = new KafkaConsumer<>(config, new ByteArrayDeserializer(), values)) {
            List<TopicPartition> all = new ArrayList<>();
            for (String topic : Arrays.copyOfRange(args, 2, args.length)) {
                for (PartitionInfo one : consumer.partitionsFor(topic)) {
                    all.add(new TopicPartition(topic, one.partition()));
                }
            }
            consumer.assign(all);
            consumer.seekToBeginning(all);
            Map<TopicPartition, Long> ends = consumer.endOffsets(all);
            while (ends.entrySet().stream().anyMatch(end -> consumer.position(end.getKey()) < end.getValue())) {
                for (ConsumerRecord<byte[], GenericRecord> record : consumer.poll(Duration.ofSeconds(1))) {
                    out.println(record.topic() + "\t" + coded(record.key()) + "\t" + written(record.value()));
                }
            }
        }
        out.println("end");
        out.flush();
    }

    private static String written(GenericRecord value) throws Exception {
        if (value == null) {
            return "-\t-";
        }
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        BinaryEncoder encoder = EncoderFactory.get().binaryEncoder(bytes, null);
        new GenericDatumWriter<GenericRecord>(value.getSchema()).write(value, encoder);
        encoder.flush();
        return coded(value.getSchema().toString().getBytes(StandardCharsets.UTF_8)) + "\t" + coded(bytes.toByteArray());
    }

    private static String coded(byte[] bytes) {
        return Base64.getEncoder().encodeToString(bytes);
    }
}
