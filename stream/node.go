package stream

import (
	"github.com/semelstream/semel/codec"
	"github.com/semelstream/semel/stream/internal/graph"
)

// An operator has two sides. Its graph.Node is data: names, parents, stores.
// Its typed side, a streamNode or tableNode, knows how to put the operator to
// work in a task: to open it is to make the port that records are pushed into.
// Opening goes from a source downwards: a node's port holds the ports of the
// operators behind it, so that a record travels by plain calls from source to
// sinks. There is nothing in between: no queue, no goroutine, no any.

// A port takes the records of a stream. An error is the failure of the record
// that the task has at hand: return it as it is, up to the source.
type port[K, V any] interface {
	push(r Record[K, V]) error
}

// A streamNode is the typed side of an operator whose result is a stream.
type streamNode[K, V any] struct {
	b    *Builder
	node *graph.Node
	out  []func(o *opener) (port[K, V], error) // the uses of the stream, in order of declaration

	// What is known of the records here.
	rekeyed bool           // the key may have changed since the records were last partitioned by it
	key     codec.Codec[K] // inherited from the topic; nil if the type changed since
	value   codec.Codec[V]
}

// use adds a use of the stream.
func (n *streamNode[K, V]) use(open func(o *opener) (port[K, V], error)) {
	n.out = append(n.out, open)
}

// open makes the port into which the node's operator pushes its results.
func (n *streamNode[K, V]) open(o *opener) (port[K, V], error) {
	return openAll(o, n.out)
}

// A change is one step of a table: a row's value before and after. A row that
// was not there has hasOld false, one that is gone hasNew false.
type change[K, V any] struct {
	key            K
	old, new       V
	hasOld, hasNew bool
	ms             int64 // record time of the change
	headers        Headers

	// past says that new, or its absence, is an older version than the table's
	// row, which stays as it is. Only versioned tables tell of such, without old.
	past bool
}

// A tablePort takes the changes of a table.
type tablePort[K, V any] interface {
	change(c change[K, V]) error
}

// rows reads a table's rows as they are now, stored or worked out.
type rows[K, V any] interface {
	row(key K) (v V, ms int64, ok bool, err error)
}

// A tableNode is the typed side of an operator whose result is a table.
type tableNode[K, V any] struct {
	b    *Builder
	node *graph.Node
	out  []func(o *opener) (tablePort[K, V], error)

	// openRows gives access to the table's rows within a task; nil if they can
	// neither be read nor worked out. Call needRows when the operator is
	// declared.
	openRows func(o *opener) (rows[K, V], error)
	// openTold gives access to the rows as what follows has been told of them;
	// nil if that is openRows. See telling.
	openTold func(o *opener) (rows[K, V], error)
	// openPast gives access to rows as they were valid at a time; nil if the
	// table is not versioned.
	openPast func(o *opener) (pastRows[K, V], error)
	history  int64      // for how long versions are kept, in ms; 0 in other tables
	reads    []*telling // tables with a store that rows are read from
	tells    *telling   // of a table with a store
	// wantOld is set by operators that look at change.old; it is passed on to
	// the tables above, which otherwise may leave old out.
	wantOld bool
	askOld  func() // sets wantOld above

	// finals is where the table's final rows come from; nil if it has no windows,
	// or such as do not close.
	finals *finalSource[K, V]

	key   codec.Codec[K]
	value codec.Codec[V]
	store *graph.Store // nil if the rows are worked out
}

func (n *tableNode[K, V]) use(open func(o *opener) (tablePort[K, V], error)) {
	n.out = append(n.out, open)
}

func (n *tableNode[K, V]) open(o *opener) (tablePort[K, V], error) {
	out, err := openAllTables(o, n.out)
	if err != nil {
		return nil, err
	}
	return wrapTelling(o, n.tells, out)
}

// toldRows are the rows as what follows has been told of them.
func (n *tableNode[K, V]) toldRows(o *opener) (rows[K, V], error) {
	if n.openTold != nil {
		return n.openTold(o)
	}
	return n.openRows(o)
}

// needRows is for an operator that looks the table's rows up.
func (n *tableNode[K, V]) needRows(user *graph.Node) {
	if n.openRows == nil {
		n.b.problem(user, "it looks up rows of %s, which has them only when they change; keep them with .Stored(\"name\") and use that table", label(n.node))
	} else if n.store != nil {
		useStore(n.b, user, n.store)
	}
}

// needOld makes the changes of this table carry the value before.
func (n *tableNode[K, V]) needOld() {
	if !n.wantOld {
		n.wantOld = true
		if n.askOld != nil {
			n.askOld()
		}
	}
}
