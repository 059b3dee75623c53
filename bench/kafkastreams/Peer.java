import static org.apache.kafka.streams.kstream.Suppressed.BufferConfig.unbounded;
import static org.apache.kafka.streams.kstream.Suppressed.untilWindowCloses;

import java.time.Duration;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.JoinWindows;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.SessionWindows;
import org.apache.kafka.streams.kstream.StreamJoined;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.kstream.WindowedSerdes;

/**
 * The topologies of the benchmark, as Kafka Streams has them. Settings are its defaults but for
 * exactly-once and the commit interval.
 *
 * <p>Arguments: topology, bootstrap servers, application id, input, output, state directory, commit
 * interval in ms; then, in ms, size and advance of windows, gap of sessions, and difference of joins.
 * It runs until it is killed.
 */
public final class Peer {
  static final Serde<Bytes> KEY = Serdes.Bytes(); // a binary number, no text, as values begin with one
  static final Serde<byte[]> VALUE = Serdes.ByteArray();
  static final Serde<Long> NUMBER = Serdes.Long();

  public static void main(String[] args) {
    Properties p = new Properties();
    p.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, args[1]);
    p.put(StreamsConfig.APPLICATION_ID_CONFIG, args[2]);
    p.put(StreamsConfig.STATE_DIR_CONFIG, args[5]);
    p.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, StreamsConfig.EXACTLY_ONCE_V2);
    p.put(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, Long.parseLong(args[6]));
    p.put(ConsumerConfig.AUTO_OFFSET_RESET_CONFIG, "earliest");

    StreamsBuilder builder = new StreamsBuilder();
    define(builder, args[0], args[3], args[4], millis(args[7]), millis(args[8]), millis(args[9]), millis(args[10]));
    KafkaStreams streams = new KafkaStreams(builder.build(p), p);
    streams.setUncaughtExceptionHandler(
        e -> {
          e.printStackTrace();
          Runtime.getRuntime().halt(1);
          return null;
        });
    streams.start();
  }

  static Duration millis(String n) {
    return Duration.ofMillis(Long.parseLong(n));
  }

  static void define(
      StreamsBuilder builder, String topology, String in, String out, Duration size, Duration advance, Duration gap, Duration near) {
    KStream<Bytes, byte[]> records = builder.stream(in, Consumed.with(KEY, VALUE));
    TimeWindows tumbling = TimeWindows.ofSizeWithNoGrace(size);
    switch (topology) {
      case "count" ->
          records.groupByKey().count(Materialized.as("rows")).toStream().to(out, Produced.with(KEY, NUMBER));
      case "tumbling" ->
          windows(records.groupByKey().windowedBy(tumbling).count(Materialized.as("rows")), out, size);
      case "hopping" ->
          windows(records.groupByKey().windowedBy(tumbling.advanceBy(advance)).count(Materialized.as("rows")), out, size);
      case "hopping-final" ->
          windows(
              records
                  .groupByKey()
                  .windowedBy(tumbling.advanceBy(advance))
                  .count(Materialized.as("rows"))
                  .suppress(untilWindowCloses(unbounded())),
              out,
              size);
      case "sessions" ->
          records
              .groupByKey()
              .windowedBy(SessionWindows.ofInactivityGapWithNoGrace(gap))
              .count(Materialized.as("rows"))
              .toStream()
              .to(out, Produced.with(WindowedSerdes.sessionWindowedSerdeFrom(Bytes.class), NUMBER));
      case "join-table" ->
          records
              .join(builder.table(in + "-rows", Consumed.with(KEY, VALUE), Materialized.as("rows")), (v, row) -> v)
              .to(out, Produced.with(KEY, VALUE));
      case "join-stream" -> {
        KStream<Bytes, byte[]> left = records.filter((k, v) -> (v[7] & 1) == 0);
        KStream<Bytes, byte[]> right = records.filter((k, v) -> (v[7] & 1) == 1);
        left.join(right, (l, r) -> l, JoinWindows.ofTimeDifferenceWithNoGrace(near), StreamJoined.with(KEY, VALUE, VALUE))
            .to(out, Produced.with(KEY, VALUE));
      }
      default -> throw new IllegalArgumentException("no topology " + topology);
    }
  }

  static void windows(KTable<Windowed<Bytes>, Long> counts, String out, Duration size) {
    counts
        .toStream()
        .to(out, Produced.with(WindowedSerdes.timeWindowedSerdeFrom(Bytes.class, size.toMillis()), NUMBER));
  }
}
