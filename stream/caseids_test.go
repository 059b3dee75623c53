package stream

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// caseTests is where each known trouble with operators, time, tables, joins,
// bytes and stores is tested. Those that are not listed here have their id in
// the test's name.
var caseTests = map[string]string{
	"WIN-07 a sliding window near zero":     "TestSlidingRulesGiveWhatTheDefinitionGives",
	"WIN-08 sliding at equal times":         "TestSlidingRulesGiveWhatTheDefinitionGives",
	"JOI-11 the same hash for the same key": "TestMurmur2IsKafkas",
	"JOI-12 partition counts that differ":   "TestJoinedTopicsWithDifferentPartitionCountsAreAnErrorWithBothCounts",
	"TAB-08 stores that no longer fit":      "TestStoresOfAnotherTopologyInTheStateDirectoryAreAnErrorWhereTheirsWouldBeMissing",
	"SER-01 empty is not null":              "TestEmptyIsNotNull",
	"SER-02 text that is not UTF-8":         "TestStringKeepsBytesThatAreNotUTF8",
	"SER-04 records without a timestamp":    "TestRecordsWithoutATimestampAreDropped",
	"SER-05 numbers in JSON":                "TestJSONKeepsNumbersInUntypedData",
	"SER-06 a record that does not decode":  "TestARecordThatDoesNotDecodeStopsTheAppAndNothingBeforeItIsLost",
	"SER-06 a function that panics":         "TestAFunctionThatFailsOrPanicsNamesOperatorRecordAndReason",
	"SER-08 words of real text":             "TestWordsAreCountedWhateverTheirCase",
	"STA-01 a directory in use":             "TestAStateDirectoryInUseIsAnErrorThatNamesTheHolder",
	"STA-02 the lock of a dead process":     "TestALockOfADeadProcessIsTakenOver",
	"STA-04 a full disk":                    "TestAFullDiskHoldsUpNothingAndIsWrittenWhenItHasRoomAgain",
	"STA-05 damaged files":                  "TestFilesThatWereDamagedAreMovedAsideAndTheStateIsRebuilt",
	"STA-06 a log cut short":                "TestACrashAtAnyOperationLeavesTheChangelogUpToThePosition",
	"STA-09 signed keys in order":           "TestEncodingsSortAsPromised",
	"STA-10 values that are changed":        "TestPutTakesACopyOfWhatTheCodecAliases",
	"RST-01 aborted values":                 "TestARestoreFromABrokerWaitsForTheOpenTransaction",
	"RST-03 to 07 odd changelogs":           "TestRestores",
	"RST-08 uncommitted rows on disk":       "TestPersistWhileATransactionIsOpenStoresWhatWasCommitted",
	"RST-11 what is damaged":                "TestCorruptionFoundAtARecordMovesTheStateAsideAndGoesOn",
	"RST-13 a changelog that was made anew": "TestAChangelogThatWasMadeAnewUnderStateIsAnError",
	"RST-15 windows that have expired":      "TestExpiredWindowsAreGone",
	"RST-16 settings of changelogs":         "TestAChangelogThatExistsIsValidated",
	"PAY-01 a crash debits once":            "TestMoneyIsNeitherMadeNorLostWhereverItCrashes",
	"PAY-02 a payment sent twice":           "TestPaymentThatWasSentTwiceIsDoneOnce",
}

// Known troubles that nothing is tested of yet, with the reason.
var casesWithoutTest = map[string]string{
	"STA-03": "the state directory has no cleaner that could race",
	"STA-07": "positions are in the stores' own engine: there is no file of checkpoints",
	"STA-11": "what a directory that vanishes does is left to the disk's errors",
	"DED-07": "one id with two contents is a duplicate like any other: what to compare is for a processor to say",
}

var testFunc = regexp.MustCompile(`(?m)^func (Test\w+)\(`)

func TestEveryCaseHasItsTest(t *testing.T) {
	have := map[string]bool{}
	err := filepath.WalkDir("..", func(path string, _ os.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		b, err := os.ReadFile(path)
		for _, m := range testFunc.FindAllStringSubmatch(string(b), -1) {
			have[m[1]] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, what := range slices.Sorted(maps.Keys(caseTests)) {
		if !have[caseTests[what]] {
			t.Errorf("%s: there is no %s", what, caseTests[what])
		}
	}
	for id := range casesWithoutTest {
		name := "Test" + strings.ReplaceAll(id, "-", "")
		for test := range have {
			if strings.HasPrefix(test, name) {
				t.Errorf("%s has a test now: %s", id, test)
			}
		}
	}
}
