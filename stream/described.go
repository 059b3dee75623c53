package stream

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// readDescription reads what [Topology.Describe] or [Topology.DescribeJSON]
// returned, now or in an earlier version.
func readDescription(s string) (d description, err error) {
	if strings.HasPrefix(strings.TrimSpace(s), "{") {
		err = json.Unmarshal([]byte(s), &d)
		return d, err
	}
	for i, line := range strings.Split(s, "\n") {
		if err := d.readLine(strings.TrimRight(line, " \r")); err != nil {
			return d, fmt.Errorf("line %d: %w", i+1, err)
		}
	}
	return d, nil
}

// readLine adds one line of text.
func (d *description) readLine(line string) error {
	rest, inSub := strings.CutPrefix(line, "  ")
	switch {
	case line == "":
		return nil
	case !inSub:
		return d.readHead(line)
	case len(d.Subs) == 0:
		return fmt.Errorf("%q is in no sub-topology", rest)
	}
	sub := &d.Subs[len(d.Subs)-1]
	switch {
	case strings.HasPrefix(rest, "partitioned alike: "):
		return nil // nothing is compared by it
	case strings.HasPrefix(rest, `store "`):
		st, err := readStoreText(rest)
		sub.Stores = append(sub.Stores, st)
		return err
	}
	o, err := readOperatorText(rest)
	sub.Operators = append(sub.Operators, o)
	return err
}

// readHead reads a line that is in no sub-topology.
func (d *description) readHead(line string) error {
	if strings.HasPrefix(line, `global table "`) {
		return nil // its rows are those of its topic, whatever they were
	}
	n, ok := strings.CutPrefix(line, "sub-topology ")
	id, err := strconv.Atoi(n)
	if !ok || err != nil {
		return fmt.Errorf("%q is not what Describe writes", line)
	}
	d.Subs = append(d.Subs, subText{ID: id})
	return nil
}

// readOperatorText undoes operatorText.text, as far as operators are compared.
func readOperatorText(s string) (o operatorText, err error) {
	name, rest, ok := strings.Cut(s, ": ")
	if !ok {
		return o, fmt.Errorf("%q is no operator", s)
	}
	o.Name = name
	o.Kind, _, _ = strings.Cut(rest, " ")
	if _, topic, ok := strings.Cut(rest, " reads "); ok && o.Kind == "source" {
		o.Reads, err = readTopicText(topic)
		return o, err
	}
	if _, stores, ok := strings.Cut(rest, ` uses store "`); ok {
		o.Stores, err = readNames(`"` + stores)
	}
	return o, err
}

// readTopicText undoes topicText.text.
func readTopicText(s string) (*topicText, error) {
	t := &topicText{}
	s, t.Repartition = strings.CutPrefix(s, "repartition ")
	s, t.Pattern = strings.CutPrefix(s, "topics matching ")
	name, rest, err := readQuoted(strings.TrimPrefix(s, "topic "))
	if err != nil {
		return nil, err
	}
	t.Name = name
	if n, ok := strings.CutPrefix(rest, " of "); ok {
		n, rest, _ = strings.Cut(n, " partitions")
		if t.Partitions, err = strconv.Atoi(n); err != nil {
			return nil, fmt.Errorf("%q is no number of partitions", n)
		}
	}
	if by, ok := strings.CutPrefix(rest, " partitioned by "); ok {
		t.PartitionBy, _, _ = strings.Cut(by, " from ")
	}
	return t, nil
}

// readStoreText undoes storeText.text.
func readStoreText(s string) (st storeText, err error) {
	var rest string
	if st.Name, rest, err = readQuoted(strings.TrimPrefix(s, "store ")); err != nil {
		return st, err
	}
	for i, part := range strings.Split(strings.TrimPrefix(rest, ": "), ", ") {
		switch {
		case i == 0:
			st.Kind, st.Double = strings.CutSuffix(part, withDuplicates)
			st.Kind, st.Panes = strings.CutSuffix(st.Kind, ofPanes)
			st.Kind, st.Once = strings.CutSuffix(st.Kind, ofBundles)
		case strings.HasPrefix(part, "retention "):
			d, err := time.ParseDuration(strings.TrimPrefix(part, "retention "))
			if err != nil {
				return st, fmt.Errorf("the retention of store %q: %w", st.Name, err)
			}
			st.Retain = d.Milliseconds()
		case part == "in memory":
			st.InMemory = true
		case strings.HasPrefix(part, "changelog is topic "):
			st.Changelog = true
			if st.Source, _, err = readQuoted(strings.TrimPrefix(part, "changelog is topic ")); err != nil {
				return st, err
			}
		case part == "changelog" || strings.HasPrefix(part, "changelog "):
			st.Changelog = true
		}
	}
	return st, nil
}

func readNames(s string) (names []string, err error) {
	for {
		var name string
		if name, s, err = readQuoted(s); err != nil {
			return names, err
		}
		names = append(names, name)
		var more bool
		if s, more = strings.CutPrefix(s, ", "); !more {
			return names, nil
		}
	}
}

func readQuoted(s string) (text, rest string, err error) {
	q, err := strconv.QuotedPrefix(s)
	if err != nil {
		return "", "", fmt.Errorf("%q does not begin with a name in quotes", s)
	}
	text, err = strconv.Unquote(q)
	return text, s[len(q):], err
}
