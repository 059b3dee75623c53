package stream_test

import (
	"fmt"
	"time"

	"github.com/semelstream/semel/codec"
	"github.com/semelstream/semel/stream"
	"github.com/semelstream/semel/stream/streamtest"
)

func ExampleStream_JoinStream() {
	views := stream.NewTopic("views", codec.String, codec.String) // by user
	clicks := stream.NewTopic("clicks", codec.String, codec.String)
	hits := stream.NewTopic("hits", codec.String, codec.String)

	define := func(b *stream.Builder) {
		// A click counts if it comes at most ten seconds after the view.
		b.Stream(views).
			JoinStream("hits", b.Stream(clicks), stream.Between(0, 10*time.Second, time.Minute),
				func(ad, link string) string { return ad + " led to " + link }).
			To(hits)
	}

	at := func(seconds int64, user, what string) stream.Record[string, string] {
		return stream.Record[string, string]{Key: user, Value: what, Time: time.Unix(seconds, 0)}
	}
	streamtest.Run(define, func(d *streamtest.Driver) {
		d.PutRecord(views, at(100, "ann", "shoes"))
		d.PutRecord(clicks, at(104, "ann", "shop"))
		d.PutRecord(clicks, at(104, "bob", "shop")) // has seen nothing
		d.PutRecord(clicks, at(111, "ann", "home")) // is too long after it
		for _, r := range d.Out(hits) {
			fmt.Println(r.Key, r.Value)
		}
	})
	// Output: ann shoes led to shop
}

func ExampleStream_LeftJoinStream() {
	orders := stream.NewTopic("orders", codec.String, codec.Int64)
	payments := stream.NewTopic("payments", codec.String, codec.Int64)
	states := stream.NewTopic("states", codec.String, codec.String)

	define := func(b *stream.Builder) {
		state := func(price, paid int64, ok bool) string {
			switch {
			case !ok:
				return "not paid"
			case paid < price:
				return "paid in part"
			}
			return "paid"
		}
		b.Stream(orders).
			LeftJoinStream("paid", b.Stream(payments), stream.Within(time.Hour, time.Minute), state).
			To(states)
	}

	at := func(minutes int64, order string, cents int64) stream.Record[string, int64] {
		return stream.Record[string, int64]{Key: order, Value: cents, Time: time.Unix(60*minutes, 0)}
	}
	streamtest.Run(define, func(d *streamtest.Driver) {
		d.PutRecord(orders, at(100, "tea", 500))
		d.PutRecord(orders, at(101, "rice", 900))
		d.PutRecord(payments, at(130, "rice", 900))
		d.PutRecord(payments, at(170, "salt", 100)) // one hour after tea's order, and ten minutes
		for _, r := range d.Out(states) {
			fmt.Println(r.Key, r.Value)
		}
	})
	// Output:
	// rice paid
	// tea not paid
}

func ExampleStream_OuterJoinStream() {
	ours := stream.NewTopic("our-bookings", codec.String, codec.Int64)
	theirs := stream.NewTopic("bank-bookings", codec.String, codec.Int64)
	differences := stream.NewTopic("differences", codec.String, codec.String)

	define := func(b *stream.Builder) {
		compare := func(our int64, ok bool, their int64, ok2 bool) string {
			switch {
			case !ok:
				return "only the bank has it"
			case !ok2:
				return "only we have it"
			case our != their:
				return fmt.Sprintf("we have %d, the bank %d", our, their)
			}
			return "" // equal
		}
		b.Stream(ours).
			OuterJoinStream("compared", b.Stream(theirs), stream.Within(time.Minute, 0), compare).
			Filter(func(_, difference string) bool { return difference != "" }).
			To(differences)
	}

	at := func(seconds int64, booking string, cents int64) stream.Record[string, int64] {
		return stream.Record[string, int64]{Key: booking, Value: cents, Time: time.Unix(seconds, 0)}
	}
	streamtest.Run(define, func(d *streamtest.Driver) {
		d.PutRecord(ours, at(10, "a", 500))
		d.PutRecord(theirs, at(20, "a", 500))
		d.PutRecord(ours, at(30, "b", 70))
		d.PutRecord(theirs, at(40, "b", 71))
		d.PutRecord(ours, at(50, "c", 1))
		d.PutRecord(theirs, at(60, "d", 2))
		d.PutRecord(ours, at(121, "e", 3)) // more than a minute later
		for _, r := range d.Out(differences) {
			fmt.Println(r.Key+":", r.Value)
		}
	})
	// Output:
	// b: we have 70, the bank 71
	// c: only we have it
	// d: only the bank has it
}
