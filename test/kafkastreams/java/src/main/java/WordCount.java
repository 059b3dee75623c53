import static org.apache.kafka.streams.kstream.Suppressed.BufferConfig.unbounded;
import static org.apache.kafka.streams.kstream.Suppressed.untilWindowCloses;

import java.time.Duration;
import java.util.Arrays;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.EmitStrategy;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.Repartitioned;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.state.WindowStore;

/**
 * The application that is taken over: words are counted, in all and by second, the
 * latter with final results by suppress and by emitting on close. Every store
 * and repartition topic has a name, as a takeover needs it. Topics of its own begin with the application id and a dot.
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
    KTable<Windowed<String>, Long> perSecond =
        words.groupByKey().windowedBy(SECONDS).count(Materialized.as("per-second"));
    write(perSecond, prefix + "second-counts");
    write(perSecond.suppress(untilWindowCloses(unbounded()).withName("held")), prefix + "suppressed");
    write(
        words
            .groupByKey()
            .windowedBy(SECONDS)
            .emitStrategy(EmitStrategy.onWindowClose())
            .count(
                Materialized.<String, Long, WindowStore<Bytes, byte[]>>as("closed")
                    .withRetention(Duration.ofHours(1))),
        prefix + "closed");
  }

  static final TimeWindows SECONDS =
      TimeWindows.ofSizeAndGrace(Duration.ofSeconds(1), Duration.ofSeconds(40));

  static void write(KTable<Windowed<String>, Long> counts, String topic) {
    counts
        .toStream((window, n) -> window.key() + "@" + window.window().start())
        .to(topic, Produced.with(Serdes.String(), Serdes.Long()));
  }
}
