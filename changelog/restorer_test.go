package changelog_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/semelstream/semel/changelog"
	"github.com/semelstream/semel/internal/seam"
)

func job(to changelog.Target, start, end int64) *changelog.Job {
	return &changelog.Job{TP: tp0, Target: to, Start: start, End: end, Done: func(error) {}}
}

// results gathers what jobs end with.
type results map[seam.TP][]error

func (r results) of(j *changelog.Job) *changelog.Job {
	j.Done = func(err error) { r[j.TP] = append(r[j.TP], err) }
	return j
}

// one is the result of a job that must have ended once.
func (r results) one(t testing.TB, tp seam.TP) error {
	t.Helper()
	if len(r[tp]) != 1 {
		t.Fatalf("%v ended %d times: %v", tp, len(r[tp]), r[tp])
	}
	return r[tp][0]
}

// restore does one job on s, which does not wait: a log that does not come to
// the job's end fails the test.
func restore(t testing.TB, s *fakeSource, j *changelog.Job) error {
	t.Helper()
	res := results{}
	r := changelog.NewRestorer(s)
	r.Add(res.of(j))
	turn(t, r)
	return res.one(t, j.TP)
}

// turn steps until no job is left.
func turn(t testing.TB, r *changelog.Restorer) {
	t.Helper()
	for range 10_000 {
		if r.Jobs() == 0 {
			return
		}
		step(t, r)
	}
	t.Fatalf("%d jobs never end", r.Jobs())
}

func step(t testing.TB, r *changelog.Restorer) {
	t.Helper()
	if err := r.Step(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
}

// one is a Restorer of one log.
func one(words string) (*fakeSource, *fakeLog, *changelog.Restorer, results) {
	s, l := newSource(), parse(words)
	s.logs[tp0] = l
	return s, l, changelog.NewRestorer(s), results{}
}

func TestARestoreWaitsForTheOpenTransactionAtTheEnd(t *testing.T) {
	for marker, want := range map[string]string{"commit": "a=2@2", "abort": "a=1@0"} {
		eachTarget(t, func(t *testing.T, to target) {
			s, l, r, res := one("a=1 commit a=2")
			r.Add(res.of(job(to, 0, l.end())))
			ran := make(chan error, 1)
			go func() { ran <- r.Run(t.Context()) }()
			<-s.waits // everything stable has been read
			s.change(func() { l.words = append(l.words, marker) })
			if err := <-ran; err != nil {
				t.Fatal(err)
			}
			if err := res.one(t, tp0); err != nil {
				t.Fatal(err)
			}
			wantRows(t, to, want)
			if to.Position() != 3 {
				t.Errorf("position %d", to.Position())
			}
		})
	}
}

func TestAJobIsCanceledWhileItWaits(t *testing.T) {
	s, l, r, res := one("a=1 commit a=2")
	to := newMap()
	r.Add(res.of(job(to, 0, l.end())))
	asked, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for range 2 { // reads a=1, then waits
			step := r.Step(t.Context(), time.Hour)
			if step != nil {
				t.Error(step)
			}
		}
		<-asked
		r.Cancel(tp0)
	}()
	<-s.waits
	close(asked)
	r.Wake()
	<-done
	if err := res.one(t, tp0); !errors.Is(err, changelog.ErrCanceled) {
		t.Fatal(err)
	}
	if r.Jobs() != 0 || len(s.at) > 0 {
		t.Fatalf("%d jobs, reading %v", r.Jobs(), s.at)
	}
	// What was applied stays, and the next job goes on from there.
	if to.Position() != 2 {
		t.Fatalf("position %d", to.Position())
	}
	r.Cancel(tp0) // of nothing
}

func TestARestoreEndsWithItsContextAndLeavesItsJobs(t *testing.T) {
	s, l, r, res := one("a=1")
	ctx, cancel := context.WithCancel(t.Context())
	r.Add(res.of(job(newMap(), 0, l.end())))
	ran := make(chan error, 1)
	go func() { ran <- r.Run(ctx) }()
	<-s.waits
	cancel()
	if err := <-ran; !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if r.Jobs() != 1 || len(res) > 0 {
		t.Fatalf("%d jobs, ended %v", r.Jobs(), res)
	}
	r.Close()
	if err := res.one(t, tp0); !errors.Is(err, changelog.ErrCanceled) || !s.closed {
		t.Fatal(err, s.closed)
	}
	r.Add(res.of(&changelog.Job{TP: seam.TP{Topic: "late"}, Target: newMap(), End: 1}))
	if err := res.one(t, seam.TP{Topic: "late"}); !errors.Is(err, changelog.ErrCanceled) {
		t.Fatal("a job that is added after Close:", err)
	}
}

func TestPartitionsAreRestoredSideBySideAndFailAlone(t *testing.T) {
	s, res := newSource(), results{}
	r := changelog.NewRestorer(s)
	s.limit = 1
	to := map[int32]*mapTarget{}
	for p, words := range []string{"a=1 commit a=2 commit", "b=1 commit b=2 commit", "c=1 c=2 c=3 commit"} {
		l, tp := parse(words), seam.TP{Topic: "log", Partition: int32(p)}
		s.logs[tp], to[int32(p)] = l, newMap()
		r.Add(res.of(&changelog.Job{TP: tp, Target: to[int32(p)], End: l.end()}))
	}
	if r.Jobs() != 3 {
		t.Fatal(r.Jobs())
	}
	step(t, r) // a record of each
	disk := errors.New("disk full")
	to[1].fail = disk
	turn(t, r)
	for p, want := range []string{"a=2@2", "b=1@0", "c=3@2"} {
		tp := seam.TP{Topic: "log", Partition: int32(p)}
		if err := res.one(t, tp); errors.Is(err, disk) != (p == 1) || (err != nil) != (p == 1) {
			t.Errorf("%v: %v", tp, err)
		}
		wantRows(t, to[int32(p)], want)
	}
	// The one that failed goes on where its target stands.
	delete(res, seam.TP{Topic: "log", Partition: 1})
	r.Add(res.of(&changelog.Job{TP: seam.TP{Topic: "log", Partition: 1}, Target: to[1], End: 4}))
	turn(t, r)
	wantRows(t, to[1], "b=2@2")
}

func TestAJobFailsIfItsTargetCannotBeEmptied(t *testing.T) {
	s, _, _, _ := one("a=1 commit")
	disk := errors.New("disk full")
	to := newMap()
	to.fail = disk
	if err := restore(t, s, job(to, 0, 2)); !errors.Is(err, disk) {
		t.Fatal(err)
	}
}

func TestTwoJobsOfOnePartitionAreABug(t *testing.T) {
	_, l, r, res := one("a=1 commit")
	r.Add(res.of(job(newMap(), 0, l.end())))
	defer func() {
		if p := recover(); p == nil {
			t.Fatal("the second job was taken")
		}
	}()
	r.Add(res.of(job(newMap(), 0, l.end())))
}

func TestErrorsOfTheSource(t *testing.T) {
	s, l, r, res := one("a=1 commit")
	r.Add(res.of(job(newMap(), 0, l.end())))
	down := errors.New("no broker")
	s.err = down
	if err := r.Step(t.Context(), 0); !errors.Is(err, down) || r.Jobs() != 1 {
		t.Fatal(err, r.Jobs())
	}
	s.err = &seam.PartitionError{TP: seam.TP{Topic: "another"}, Err: down}
	if step(t, r); r.Jobs() != 1 {
		t.Fatal("a stranger's error ended the job")
	}
	s.err = &seam.PartitionError{TP: tp0, Err: down}
	if step(t, r); r.Jobs() != 0 {
		t.Fatal("the job goes on")
	}
	if err := res.one(t, tp0); !errors.Is(err, down) {
		t.Fatal(err)
	}
}

func TestRecordsThatDoNotFollowEachOtherEndTheJob(t *testing.T) {
	for name, mangle := range map[string]func(b *changelog.Batch){
		"before the position": func(b *changelog.Batch) { b.Records[0].Offset = 1 },
		"behind the batch":    func(b *changelog.Batch) { b.Records[len(b.Records)-1].Offset = b.Next },
		"backwards":           func(b *changelog.Batch) { b.Records, b.Next = nil, 1 },
	} {
		t.Run(name, func(t *testing.T) {
			s, _, _, _ := one("a=1 commit b=2 c=3 commit")
			s.mangle = func(b []changelog.Batch) []changelog.Batch { mangle(&b[0]); return b }
			to := newMap()
			fill(t, to, "a=1", 2)
			if err := restore(t, s, job(to, 0, 5)); !errors.Is(err, changelog.ErrDisorder) {
				t.Fatal(err)
			}
			wantRows(t, to, "a=1@0")
		})
	}
}

func TestProgressCountsWhatWasApplied(t *testing.T) {
	s, _, _, _ := one("a=11 b=2 abort a=11 commit bb- commit")
	s.limit = 1
	var got []changelog.Progress
	j := job(newMap(), 0, 7)
	j.Progress = func(p changelog.Progress) { got = append(got, p) }
	if err := restore(t, s, j); err != nil {
		t.Fatal(err)
	}
	want := []changelog.Progress{
		{Position: 4, End: 7, Records: 1, Bytes: 3},
		{Position: 6, End: 7, Records: 2, Bytes: 5},
		{Position: 7, End: 7, Records: 2, Bytes: 5},
	}
	if len(got) != len(want) {
		t.Fatal(got)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("%+v, want %+v", got[i], want[i])
		}
	}
}

func TestAJobThatIsCanceledByItsOwnProgressEndsOnce(t *testing.T) {
	for _, at := range []int64{1, 4} { // on the way, and at its end
		s, l, r, res := one("a=1 commit b=2 commit")
		s.limit = 1
		j := res.of(job(newMap(), 0, l.end()))
		j.Progress = func(p changelog.Progress) {
			if p.Position == at {
				r.Cancel(tp0)
			}
		}
		r.Add(j)
		turn(t, r)
		if err := res.one(t, tp0); !errors.Is(err, changelog.ErrCanceled) {
			t.Errorf("canceled at %d: %v", at, err)
		}
	}
}

func TestDoneMayAddTheNextJob(t *testing.T) {
	_, l, r, res := one("a=1 commit b=2 commit")
	to := newMap()
	first := job(to, 0, 2)
	first.Done = func(err error) {
		if err != nil {
			t.Error(err)
		}
		r.Add(res.of(job(to, 0, l.end())))
	}
	r.Add(first)
	turn(t, r)
	wantRows(t, to, "a=1@0 b=2@2")
	if err := res.one(t, tp0); err != nil {
		t.Fatal(err)
	}
}

// A job can take another's place while the batches of a Poll are applied. What
// that Poll read belongs to the old one, which began elsewhere.
func TestAJobGetsNothingOfWhatWasReadForTheOneBefore(t *testing.T) {
	s, res := newSource(), results{}
	r := changelog.NewRestorer(s)
	a, b := seam.TP{Topic: "a"}, seam.TP{Topic: "b"}
	s.logs[a], s.logs[b] = parse("x=1 commit"), parse("k=1 l=1 commit m=2 commit")
	old := newMap()
	fill(t, old, "k=1 l=1", 3)
	r.Add(&changelog.Job{TP: b, Target: old, End: 5, Done: func(error) {}})
	fresh := newMap()
	r.Add(res.of(&changelog.Job{TP: a, Target: newMap(), End: 2, Progress: func(changelog.Progress) {
		r.Cancel(b)
		r.Add(res.of(&changelog.Job{TP: b, Target: fresh, End: 5}))
	}}))
	turn(t, r)
	if err := res.one(t, b); err != nil {
		t.Fatal(err)
	}
	wantRows(t, fresh, "k=1@0 l=1@1 m=2@3")
	wantRows(t, old, "k=1@0 l=1@1")
}

// deleting is a job of a log of which more is deleted again and again while it
// is read: before each of the first n batches.
func deleting(t *testing.T, n int) (to *mapTarget, whys []string, err error) {
	s, l, _, _ := one(strings.Repeat("a=1 b=1 c=1 commit ", 10))
	s.limit = 1
	to = newMap()
	j := job(to, 0, l.end())
	j.Restart = func(context.Context) (int64, error) { return l.start, nil }
	j.Emptied = func(why string) { whys = append(whys, why) }
	j.Progress = func(p changelog.Progress) {
		if n > 0 {
			n--
			l.start = p.Position + 2
		}
	}
	err = restore(t, s, j)
	return to, whys, err
}

func TestAJobBeginsAgainFromNothingWhenWhatItReadsIsDeleted(t *testing.T) {
	to, whys, err := deleting(t, 3)
	if err != nil {
		t.Fatal(err)
	}
	wantRows(t, to, "a=1@36 b=1@37 c=1@38")
	if to.next != 40 || to.resets != 4 { // the first is that of every full restore
		t.Errorf("position %d, emptied %d times", to.next, to.resets)
	}
	if want := "the changelog's start moved to 3 while position 1 was read"; len(whys) != 3 || whys[0] != want {
		t.Errorf("emptied because %q", whys)
	}
}

func TestAJobDoesNotBeginAgainForEver(t *testing.T) {
	_, _, err := deleting(t, 100)
	if !errors.Is(err, kerr.OffsetOutOfRange) {
		t.Fatal(err)
	}
}

func TestEverythingIsDeletedWhileItIsRead(t *testing.T) {
	eachTarget(t, func(t *testing.T, to target) {
		s, l, r, res := one("a=1 commit b=1 commit")
		s.limit = 1
		j := res.of(job(to, 0, l.end()))
		why := ""
		j.Restart = func(context.Context) (int64, error) { return l.start, nil }
		j.Emptied = func(s string) { why = s }
		r.Add(j)
		step(t, r)
		wantRows(t, to, "a=1@0")
		l.start = 4
		turn(t, r)
		if err := res.one(t, tp0); err != nil {
			t.Fatal(err)
		}
		if wantRows(t, to, ""); to.Position() != 4 {
			t.Errorf("position %d", to.Position())
		}
		if want := "the changelog's start moved to 4 while position 1 was read"; why != want {
			t.Errorf("emptied because %q", why)
		}
	})
}

func TestAJobThatCannotBeginAgainFails(t *testing.T) {
	down := errors.New("no broker")
	for name, c := range map[string]struct {
		restart func(context.Context) (int64, error)
		want    error
	}{
		"it was not told how":    {nil, kerr.OffsetOutOfRange},
		"nobody knows the start": {func(context.Context) (int64, error) { return 0, down }, down},
		"its position is not before the start but behind the end": {func(context.Context) (int64, error) { return 0, nil }, changelog.ErrAhead},
	} {
		t.Run(name, func(t *testing.T) {
			s, l, r, res := one("a=1 commit b=1 commit")
			s.limit = 1
			to := newMap()
			fill(t, to, "a=1", 2)
			j := res.of(job(to, 0, 4))
			j.Restart = c.restart
			r.Add(j)
			l.words = l.words[:1] // made anew, or cut by an unclean election
			turn(t, r)
			if err := res.one(t, tp0); !errors.Is(err, c.want) {
				t.Fatal(err)
			}
			wantRows(t, to, "a=1@0") // evidence stays
		})
	}
}

// A new leader can know the old start, or the old end, for a moment.
func TestAPositionThatIsOutOfRangeForAMomentIsTriedAgain(t *testing.T) {
	_, l, r, res := one("a=1 commit b=1 commit")
	to := newMap()
	fill(t, to, "a=1", 2)
	j := res.of(job(to, 0, 4))
	j.Restart = func(context.Context) (int64, error) { return 0, nil }
	all := l.words
	l.words = all[:1]
	r.Add(j)
	step(t, r)
	l.words = all
	turn(t, r)
	if err := res.one(t, tp0); err != nil {
		t.Fatal(err)
	}
	wantRows(t, to, "a=1@0 b=1@2")
}
