package chrome

import (
	"fmt"
	"strings"
	"testing"
)

// ev returns an event with the given raw name, in the key order of Kineto.
func ev(rawName string) string {
	return `{
    "ph": "X", "cat": "python_function", "name": "` + rawName + `", "pid": 1, "tid": 2,
    "ts": 3, "dur": 1,
    "args": {
      "Python id": 1, "Ev Idx": 9
    }
  }`
}

// TestPyTorch146900 is about names with unescaped quotes, as written before
// Kineto escaped them.
func TestPyTorch146900(t *testing.T) {
	for _, name := range []string{
		`a"b`,
		`a"b"c`,
		`"quoted"`,
		`"`,
		`a "b", "c"`,
		`{"device": "cpu", "dtype": "float32"}(12): run`,
		`{"device": "cpu"}, x(12): run`,
		`<eval_with_key>.1 from {"a": {"b": 1}}(3): forward`,
		`f("x", 'y', "z")`,
		`["a", "b"](1): g`,
		`it's "ok":`,
	} {
		quotes := strings.Count(name, `"`)
		check(t, between(ev(name)), aAndZ(fmt.Sprintf("X python_function %q 1/2 3000+1000 Python id=1 Ev Idx=9", name)),
			fmt.Sprintf("%s*%d", CodeUnescapedQuote, quotes))
	}
}

func TestUnescapedQuoteAtTheEndOfAnEvent(t *testing.T) {
	check(t, between(`{"ph":"X","pid":1,"tid":2,"ts":3,"dur":1,"name":"a"b"}`), aAndZ(`X  "a\"b" 1/2 3000+1000`), CodeUnescapedQuote)
	check(t, `[`+a+`,{"ph":"X","pid":1,"tid":2,"ts":3,"dur":1,"name":"a"b"}`, []string{aWant, `X  "a\"b" 1/2 3000+1000`}, CodeUnescapedQuote, CodeMissingArrayEnd)
}

func TestUnescapedQuoteInArgs(t *testing.T) {
	check(t, between(`{"ph":"X","name":"b","pid":1,"tid":2,"ts":3,"dur":1,"args":{"s":"say "hi" now","l":["a"b","c"],"n":1}}`),
		aAndZ(`X  "b" 1/2 3000+1000 s="say \"hi\" now" l=["a\"b","c"] n=1`), CodeUnescapedQuote+"*3")
}

// TestOneBrokenEventCostsOneEvent checks that damage does not spread.
func TestOneBrokenEventCostsOneEvent(t *testing.T) {
	for name, event := range map[string]string{
		"lost closing quote":    `{"ph":"X","name":"abc, "pid":1,"tid":2,"ts":3,"dur":1}`,
		"lost opening quote":    `{"ph":"X","name":abc", "pid":1,"tid":2,"ts":3,"dur":1}`,
		"lost colon":            `{"ph":"X","name" "abc","pid":1,"tid":2,"ts":3,"dur":1}`,
		"lost closing brace":    `{"ph":"X","name":"abc","pid":1,"tid":2,"ts":3,"dur":1`,
		"lost brace of args":    `{"ph":"X","name":"abc","pid":1,"tid":2,"ts":3,"args":{"x":[1,2]}`,
		"lost bracket":          `{"ph":"X","name":"abc","pid":1,"tid":2,"ts":3,"args":{"x":[1,2}}`,
		"wrong bracket":         `{"ph":"X","name":"abc","pid":1,"tid":2,"ts":3,"args":{"x":1]}`,
		"bare word key":         `{ph:"X","name":"abc"}`,
		"single quotes":         `{'ph':'X','name':'abc'}`,
		"two values":            `{"ph":"X","name":"abc" 5,"pid":1}`,
		"cut by the next event": `{"ph":"X","name":"ab`,
		"cut in a key":          `{"ph":"X","na`,
		"cut in args":           `{"ph":"X","name":"b","args":{"x":"y`,
		"percent":               `{"ph":"X","name":%s}`,
	} {
		t.Run(name, func(t *testing.T) {
			res := check(t, between(event), aAndZ(), CodeBrokenEvent)
			for _, d := range res.r.Diagnostics() {
				if want := int64(len(`{"traceEvents":[` + a + ",\n")); d.Offset != want || d.Example == "" {
					t.Errorf("offset %d, want %d; example %q", d.Offset, want, d.Example)
				}
			}
		})
	}
}

func TestBrokenLastEvent(t *testing.T) {
	for _, event := range []string{`{"ph":"X","name":%s}`, `{"ph":"X","name":"b"`, `{"ph":"X",nam`} {
		res := check(t, "{\"traceEvents\":["+a+",\n"+event+"\n],\"traceName\": \"t\"}", []string{aWant}, CodeBrokenEvent)
		if _, ok := res.r.Metadata().Get("traceName"); !ok {
			t.Errorf("%s: metadata was lost", event)
		}
	}
	check(t, "["+a+",\n"+`{"ph":"X","name":%s}`+"\n]", []string{aWant}, CodeBrokenEvent)
	check(t, "{\"traceEvents\":["+a+",\n"+`{"ph":"X","name":%s}`+"\n]}", []string{aWant}, CodeBrokenEvent)
}

func TestBrokenFirstEvent(t *testing.T) {
	check(t, "["+`{"ph":"X","name":%s}`+",\n"+a+"]", []string{aWant}, CodeBrokenEvent)
}

func TestManyBrokenEvents(t *testing.T) {
	broken := `{"ph":"X","name":%s,"args":{"a":[{"x":1}]}}`
	check(t, "["+strings.Repeat(broken+","+a+","+broken+",", 1000)+z+"]",
		append(strings.Split(strings.Repeat(aWant+"\n", 1000), "\n")[:1000], zWant), CodeBrokenEvent+"*2000")
}

func TestMissingCommas(t *testing.T) {
	check(t, `[`+a+"\n"+z+`]`, aAndZ(), CodeMissingComma)
	check(t, `{"traceEvents":[`+a+z+`]}`, aAndZ(), CodeMissingComma)
	check(t, between(`{"ph":"X" "name":"b" "pid":1 "tid":2, "ts":3 "dur":1, "args":{"a":1 "b":"x" "c":[1]}}`),
		aAndZ(`X  "b" 1/2 3000+1000 a=1 b="x" c=[1]`), CodeMissingComma+"*6")
}

func TestTrailingCommas(t *testing.T) {
	check(t, between(`{"ph":"X","name":"b","pid":1,"tid":2,"ts":3,"dur":1,"args":{"a":[1,],},}`),
		aAndZ(`X  "b" 1/2 3000+1000 a=[1,]`), CodeTrailingComma+"*3")
}

// TestMissingValues is about the args that Kineto wrote for process groups
// without description.
func TestMissingValues(t *testing.T) {
	check(t, between(`{"ph":"X","name":"b","pid":1,"tid":2,"ts":3,"dur":1,"args":{"desc": , "n": 1, "last": }}`),
		aAndZ(`X  "b" 1/2 3000+1000 desc= n=1 last=`), CodeMissingValue+"*2")
	check(t, between(`{"ph":"X","name":"b","pid":1,"tid":2,"ts":3,"dur":,"args":{, "n": 1,, "m": 2}}`),
		aAndZ(`X  "b" 1/2 3000+- n=1 m=2`), CodeMissingValue+"*3", CodeMissingDur)
}

func TestBareWords(t *testing.T) {
	check(t, between(`{"ph":"X","name":"b","pid":1,"tid":2,"ts":3,"dur":1,"args":{"a":None,"b":True,"c":0x1f,"d":1.5.2}}`),
		aAndZ(`X  "b" 1/2 3000+1000 a=None b=True c=0x1f d=1.5.2`), CodeBadLiteral+"*4")
}

func TestDuplicateEventKey(t *testing.T) {
	check(t, between(`{"ph":"X","name":"b","name":"c","pid":1,"tid":2,"ts":3,"dur":1}`), aAndZ(`X  "c" 1/2 3000+1000`), CodeDuplicateKey)
}

func TestForeignElements(t *testing.T) {
	check(t, between(`null`), aAndZ(), CodeNotAnEvent)
	check(t, between(`"text", 5, [1, [2]], {}`), aAndZ(), CodeNotAnEvent+"*4")
	check(t, between(`{"ts":3,"name":"b","pid":1}`), aAndZ(`-  "b" 1/- 3000+-`), CodeMissingPhase)
}

func TestUnexpectedBytesBetweenEvents(t *testing.T) {
	check(t, `[`+a+",\x00\x00\x00\x00"+z+`]`, aAndZ(), CodeUnexpectedBytes)
	check(t, `[`+a+"},"+z+`]`, aAndZ(), CodeUnexpectedBytes)
	check(t, `[`+a+"; log line \"x\": {1, 2},\n"+z+`]`, aAndZ(), CodeUnexpectedBytes)
}

func TestLostArrayEnd(t *testing.T) {
	res := check(t, `{"traceEvents":[`+a+","+z+`,"traceName":"t"}`, aAndZ(), CodeUnexpectedBytes)
	if _, ok := res.r.Metadata().Get("traceName"); !ok {
		t.Error("metadata was lost")
	}
	check(t, `{"traceEvents":[`+a+","+z+`}`, aAndZ(), CodeUnexpectedBytes)
}

func TestByteOrderMark(t *testing.T) {
	check(t, "\ufeff"+between(a), aAndZ(aWant))
	check(t, "\ufeff["+a+"]", []string{aWant})
}

func TestSeveralTopLevelValues(t *testing.T) {
	check(t, a+"\n"+z+"\n", aAndZ(), CodeConcatenated)
	check(t, a+z, aAndZ(), CodeConcatenated)
	check(t, a+",\n"+z, aAndZ(), CodeConcatenated)
	check(t, "["+a+"]["+z+"]", aAndZ(), CodeConcatenated)
	check(t, `{"traceEvents":[`+a+`]}`+"\n"+`{"traceEvents":[`+z+`]}`, aAndZ(), CodeConcatenated)
	check(t, a+"\n{\"ph\":\"X\",%}\n"+z+"\n", aAndZ(), CodeConcatenated+"*2", CodeBrokenEvent)
	check(t, "{\"ph\":\"X\",%}\n"+a+"\n"+z+"\n", aAndZ(), CodeConcatenated+"*2", CodeBrokenEvent)
	res := check(t, a+"\n"+z[:20], []string{aWant}, CodeConcatenated, CodeTruncated)
	if !res.r.Truncated() {
		t.Error("not reported as truncated")
	}
}

func TestTrailingData(t *testing.T) {
	check(t, between(a)+"\x00\x00\x00", aAndZ(aWant), CodeTrailingData)
	check(t, between(a)+" done.\n", aAndZ(aWant), CodeTrailingData)
	check(t, "["+a+"] ] }\n"+z, aAndZ(), CodeTrailingData, CodeConcatenated)
}

func TestBrokenMetadataAfterEvents(t *testing.T) {
	res := check(t, `{"traceEvents":[`+a+`],"odd":[1,2`, []string{aWant}, CodeTruncated)
	if !res.r.Truncated() {
		t.Error("not reported as truncated")
	}
}
