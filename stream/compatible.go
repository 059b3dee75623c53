package stream

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/semelstream/semel/internal/assert"
	"github.com/semelstream/semel/stream/internal/graph"
	"github.com/semelstream/semel/stream/internal/runtime"
)

// CompatibleWith says what an upgrade from an older version would meet, given
// what Describe or DescribeJSON returned for it: stores whose rows this version
// would read wrongly or not find, and repartition topics that nobody would read
// to their end, each with what to do about it, and all at once. Every one is
// [ErrIncompatible]. Nil means that this version continues with the older one's
// state; stores that are new start empty, and the changelogs of stores that are
// gone stay.
//
// The JSON says more than the text: without it, codecs and windows are not
// compared. An app compares by itself when it starts, with the version that ran
// before; a test that keeps the description of what is deployed says it earlier.
func (t *Topology) CompatibleWith(description string) error {
	old, err := readDescription(description)
	if err != nil {
		return fmt.Errorf("semel: CompatibleWith got no description: %w; give it what Topology.Describe or DescribeJSON returned", err)
	}
	c := compare(old, describe(t.graph))
	var all []error
	for _, text := range c.misfits {
		all = append(all, misfit(text))
	}
	for _, topic := range c.unread {
		all = append(all, misfit(unreadText(topic)))
	}
	return errors.Join(all...)
}

// A misfit is one thing that does not fit.
type misfit string

func (m misfit) Error() string        { return string(m) }
func (m misfit) Is(target error) bool { return target == ErrIncompatible }

func unreadText(topic string) string {
	return fmt.Sprintf("repartition topic %q: it is read no more, and what was not processed yet would be lost; "+
		"let the older version process it, without new input, before this one starts", topic)
}

// Succeed implements runtime.Program.
func (p program) Succeed(saved []byte) (runtime.Succession, error) {
	now := describe(p.graph)
	var s runtime.Succession
	if saved != nil {
		old, err := readDescription(string(saved))
		if err != nil {
			return s, fmt.Errorf("the description of the version that ran before cannot be read: %w", err)
		}
		c := compare(old, now)
		now.Left = c.left
		s.Misfits, s.Notes = c.misfits, c.notes
		for _, name := range c.unread {
			t := graph.Topic{Name: name, Internal: true, Whole: old.reader(name).Whole}
			s.Unread = append(s.Unread, runtime.Unread{Topic: t.FullName(p.appID), Misfit: unreadText(name)})
		}
	}
	var err error
	s.Saved, err = json.Marshal(now)
	assert.That(err == nil, "a description cannot be encoded: %v", err)
	return s, nil
}

// A comparison is of what ran and what shall run.
type comparison struct {
	old, now description
	misfits  []string
	notes    []string    // what changes and is fine
	unread   []string    // repartition topics
	left     []storeText // whose changelogs stay
}

func compare(old, now description) *comparison {
	c := &comparison{old: old, now: now}
	for _, sub := range now.Subs {
		for _, st := range sub.Stores {
			c.store(sub, st)
		}
	}
	for _, st := range old.stores() {
		if !slices.ContainsFunc(now.stores(), storeNamed(st.Name)) {
			c.left = append(c.left, st)
			c.note("store %q is gone; its changelog, if it has one of its own, stays until you delete it", st.Name)
		}
	}
	for _, st := range old.Left {
		if !slices.ContainsFunc(now.stores(), storeNamed(st.Name)) {
			c.left = append(c.left, st)
		}
	}
	c.topics()
	c.patterns()
	return c
}

func (c *comparison) note(format string, args ...any) {
	c.notes = append(c.notes, fmt.Sprintf(format, args...))
}

// misfit is of store st: what was, what is, what to do.
func (c *comparison) misfit(st storeText, do, format string, args ...any) {
	c.misfits = append(c.misfits, fmt.Sprintf("store %q: %s; %s", st.Name, fmt.Sprintf(format, args...), do))
}

// newName is what to do about rows that are of no use.
const newName = "leave it as it was, or give the store another name, under which it starts empty"

// store compares one store with what was under its name.
func (c *comparison) store(sub subText, st storeText) {
	i := slices.IndexFunc(c.old.Left, storeNamed(st.Name))
	was, ok := c.old.subOf(st.Name)
	switch {
	case ok:
		old := was.store(st.Name)
		c.rows(old, st)
		c.place(was, sub, old, st)
		c.operators(was, sub, st.Name)
	case i >= 0:
		c.rows(c.old.Left[i], st)
		c.note("store %q is back, with the rows that it had when it left", st.Name)
	default:
		c.note("store %q is new and starts empty", st.Name)
	}
}

// rows compares what is written: layout, codecs, changelog.
func (c *comparison) rows(old, st storeText) {
	if a, b := old.shape(), st.shape(); a != b {
		c.misfit(st, newName, "it was a %s store and is a %s store", a, b)
		return
	}
	if old.Key != "" { // else it was described as text
		c.codecs(old, st)
	}
	if a, b := old.changelogText(), st.changelogText(); a != b {
		c.misfit(st, newName, "it had %s and has %s, which lacks its rows", a, b)
	}
	if old.Retain < st.Retain {
		c.note("store %q keeps rows for longer; those that are gone stay gone", st.Name)
	}
}

func (c *comparison) codecs(old, st storeText) {
	if old.Key != st.Key {
		c.misfit(st, newName, "its keys were written as %s and are read as %s", old.Key, st.Key)
	}
	if old.Value != st.Value {
		c.misfit(st, newName, "its values were written as %s and are read as %s", old.Value, st.Value)
	}
	if old.Format != st.Format {
		c.misfit(st, newName, "its rows were written in format %d and are read in format %d", old.Format, st.Format)
	}
	if old.Windows != st.Windows {
		c.misfit(st, newName, "its rows were of %s and are of %s", orNone(old.Windows), orNone(st.Windows))
	} else if old.ByKey != st.ByKey {
		c.misfit(st, newName, "its rows lie in another order in the state directory")
	}
}

func orNone(s string) string {
	if s == "" {
		return "no windows of their own"
	}
	return s
}

// place asks whether the task that has the store finds it.
func (c *comparison) place(was, sub subText, old, st storeText) {
	if was.ID != sub.ID && !old.Changelog && !st.Changelog {
		c.misfit(st, "declare the sources of the older version first and in their order, or begin anew under another AppID",
			"it has no changelog, and its rows are in the state directories of sub-topology %d, not of %d", was.ID, sub.ID)
	} else if was.ID != sub.ID {
		c.note("store %q moves from sub-topology %d to %d and is restored from its changelog", st.Name, was.ID, sub.ID)
	}
	if !st.Changelog || st.Source != "" {
		return // nothing asks for offsets beside its rows
	}
	if !sub.readsOf(c.old) {
		c.misfit(st, newName, "it has rows of %s, and none of its inputs %s was read before", quoted(was.reads()), quoted(sub.reads()))
	}
}

// patterns says which topics are not read any more, as far as patterns tell.
func (c *comparison) patterns() {
	for _, old := range c.old.inputs() {
		if !old.Pattern || slices.ContainsFunc(c.now.inputs(), func(t topicText) bool { return t.Pattern && t.Name == old.Name }) {
			continue
		}
		c.note("topics matching %q are not read by that pattern any more; what matches no source now is left where it stands", old.Name)
	}
}

// operators finds operators of a store that have got another name.
func (c *comparison) operators(was, sub subText, store string) {
	before, after := was.timed(store), sub.timed(store)
	for _, o := range before {
		renamed := slices.IndexFunc(after, func(n operatorText) bool {
			return n.Kind == o.Kind && !slices.ContainsFunc(before, func(b operatorText) bool { return b.Name == n.Name })
		})
		if renamed < 0 || slices.ContainsFunc(after, func(n operatorText) bool { return n.Name == o.Name }) {
			continue
		}
		c.misfits = append(c.misfits, fmt.Sprintf("store %q: its operator was %q and is %q, and times and timers are kept under that name; give it the option Name(%q)",
			store, o.Name, after[renamed].Name, o.Name))
	}
}

// topics compares repartition topics, which have records on their way.
func (c *comparison) topics() {
	for _, sub := range c.old.Subs {
		for _, o := range sub.Operators {
			if o.Reads == nil || !o.Reads.Repartition {
				continue
			}
			switch now := c.now.reader(o.Reads.Name); {
			case now == nil:
				c.unread = append(c.unread, o.Reads.Name)
			case now.Partitions != o.Reads.Partitions && now.Partitions > 0 && o.Reads.Partitions > 0:
				c.misfits = append(c.misfits, fmt.Sprintf("repartition topic %q: it has %d partitions and shall have %d; leave it as it was, or begin anew under another AppID",
					now.Name, o.Reads.Partitions, now.Partitions))
			}
		}
	}
}

func storeNamed(name string) func(storeText) bool {
	return func(s storeText) bool { return s.Name == name }
}

func (d description) stores() (all []storeText) {
	for _, sub := range d.Subs {
		all = append(all, sub.Stores...)
	}
	return all
}

// subOf is the sub-topology that has the store.
func (d description) subOf(store string) (subText, bool) {
	i := slices.IndexFunc(d.Subs, func(s subText) bool { return slices.ContainsFunc(s.Stores, storeNamed(store)) })
	if i < 0 {
		return subText{}, false
	}
	return d.Subs[i], true
}

// inputs are the topics and patterns that are read.
func (d description) inputs() (all []topicText) {
	for _, sub := range d.Subs {
		all = append(all, sub.inputs()...)
	}
	return all
}

// reader is the repartition topic as it is read; nil if it is not.
func (d description) reader(topic string) *topicText {
	for _, sub := range d.Subs {
		for _, o := range sub.Operators {
			if o.Reads != nil && o.Reads.Repartition && o.Reads.Name == topic {
				return o.Reads
			}
		}
	}
	return nil
}

func (s subText) store(name string) storeText {
	return s.Stores[slices.IndexFunc(s.Stores, storeNamed(name))]
}

func (s subText) inputs() (all []topicText) {
	for _, o := range s.Operators {
		if o.Reads != nil {
			all = append(all, *o.Reads)
		}
	}
	return all
}

// reads are the topics that are read, internal ones and patterns with a mark.
func (s subText) reads() (names []string) {
	for _, t := range s.inputs() {
		switch {
		case t.Repartition:
			names = append(names, t.Name+" (repartition)")
		case t.Pattern:
			names = append(names, t.Name+" (pattern)")
		default:
			names = append(names, t.Name)
		}
	}
	return names
}

// readsOf says that s may read something that was read before.
func (s subText) readsOf(old description) bool {
	return slices.ContainsFunc(s.inputs(), func(t topicText) bool {
		return slices.ContainsFunc(old.inputs(), t.meets)
	})
}

// meets says that there may be a topic that is both t and o. Which topics two
// patterns have in common is known on the cluster only.
func (t topicText) meets(o topicText) bool {
	switch {
	case t.Repartition != o.Repartition:
		return false
	case t.Pattern && o.Pattern:
		return true
	case t.Pattern:
		return t.matches(o.Name)
	case o.Pattern:
		return o.matches(t.Name)
	}
	return t.Name == o.Name
}

// matches is true also of a pattern that cannot be read, since that is no reason
// to refuse state.
func (t topicText) matches(name string) bool {
	re, err := regexp.Compile(t.Name)
	return err != nil || graph.Whole(re).MatchString(name)
}

// timed are the operators of a store whose times and timers are kept under
// their own name: processors, and the one that writes a store of rows that
// expire or wait, which comes before those that read it.
func (s subText) timed(store string) (all []operatorText) {
	st := s.store(store)
	for _, o := range s.Operators {
		switch {
		case !slices.Contains(o.Stores, store):
		case o.Kind == "process", o.Kind == "process-values":
			all = append(all, o)
		case len(all) == 0 && (st.Kind == string(graph.Window) || st.Kind == string(graph.Session) || strings.HasPrefix(st.Value, "held ")):
			return []operatorText{o}
		}
	}
	return all
}

// shape is what a store is, in words.
func (s storeText) shape() string {
	switch {
	case s.Double:
		return s.Kind + withDuplicates
	case s.Panes:
		return s.Kind + ofPanes
	case s.Once:
		return s.Kind + ofBundles
	}
	return s.Kind
}

// What [storeText.shape] adds to the kind.
const (
	withDuplicates = " with duplicates"
	ofPanes        = " of panes"
	ofBundles      = " in bundles"
)

// changelogText is where rows come from that are not on disk.
func (s storeText) changelogText() string {
	switch {
	case s.Source != "":
		return fmt.Sprintf("topic %q as its changelog", s.Source)
	case s.Changelog:
		return "a changelog of its own"
	}
	return "no changelog"
}
