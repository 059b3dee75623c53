package stream_test

import (
	"fmt"

	"github.com/semelstream/semel/codec"
	"github.com/semelstream/semel/stream"
	"github.com/semelstream/semel/stream/streamtest"
)

func ExampleTable_JoinOn() {
	type Order struct{ Customer, Item string }
	orders := stream.NewTopic("orders", codec.String, codec.JSON[Order]()) // by number
	customers := stream.NewTopic("customers", codec.String, codec.String)  // by id: name
	labels := stream.NewTopic("labels", codec.String, codec.String)        // by order

	define := func(b *stream.Builder) {
		b.Table(orders, "orders").
			JoinOn("orders-customers", b.Table(customers, "customers"),
				func(_ string, o Order) (string, bool) { return o.Customer, o.Customer != "" },
				func(o Order, name string) string { return o.Item + " for " + name }).
			To(labels)
	}

	streamtest.Run(define, func(d *streamtest.Driver) {
		d.Put(customers, "7", "Ann")
		d.Put(orders, "1001", Order{"7", "tea"})
		d.Put(orders, "1002", Order{"7", "rice"})
		d.Put(customers, "7", "Anne") // changes both
		fmt.Println(d.Last(labels))
	})
	// Output: map[1001:tea for Anne 1002:rice for Anne]
}
