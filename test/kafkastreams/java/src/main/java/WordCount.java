import java.time.Duration;
import java.util.Arrays;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.Repartitioned;
import org.apache.kafka.streams.kstream.TimeWindows;

/**
 * The application that is taken over: a word count, and one by minute. Every
 * store and repartition topic has a name, as a takeover needs it. Topics of its
 * own begin with the application id and a dot.
 *
 * <p>Arguments: bootstrap servers, application id, state directory. It runs
 * until it is killed, or until its standard input ends, upon which it closes.
 */
public final class WordCount {
  public static void main(String[] args) throws Exception {
    Properties p = new Properties();
    p.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, args[0]);
    p.put(StreamsConfig.APPLICATION_ID_CONFIG, args[1]);
    p.put(StreamsConfig.STATE_DIR_CONFIG, args[2]);
    p.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, StreamsConfig.EXACTLY_ONCE_V2);
    p.put(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, 100);
    p.put(ConsumerConfig.AUTO_OFFSET_RESET_CONFIG, "earliest");

    StreamsBuilder builder = new StreamsBuilder();
    topology(builder, args[1] + ".");
    KafkaStreams streams = new KafkaStreams(builder.build(p), p);
    streams.setUncaughtExceptionHandler(
        e -> {
          e.printStackTrace();
          Runtime.getRuntime().halt(1);
          return null;
        });
    streams.setStateListener((now, before) -> System.out.println(now));
    streams.start();
    while (System.in.read() >= 0) {}
    streams.close(Duration.ofSeconds(30));
  }

  static void topology(StreamsBuilder builder, String prefix) {
    Serde<String> text = Serdes.String();
    KStream<String, String> words =
        builder.stream(prefix + "lines", Consumed.with(text, text))
            .flatMapValues(line -> Arrays.asList(line.split(" ")))
            .selectKey((key, word) -> word)
            .repartition(Repartitioned.<String, String>as("by-word").withKeySerde(text).withValueSerde(text));
    words
        .groupByKey()
        .count(Materialized.as("counts"))
        .toStream()
        .to(prefix + "word-counts", Produced.with(text, Serdes.Long()));
    words
        .groupByKey()
        .windowedBy(TimeWindows.ofSizeAndGrace(Duration.ofMinutes(1), Duration.ofDays(1)))
        .count(Materialized.as("per-minute"))
        .toStream((window, n) -> window.key() + "@" + window.window().start())
        .to(prefix + "minute-counts", Produced.with(text, Serdes.Long()));
  }
}
