package chrome

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// The tests of this file are named after the public reports of inputs that
// broke other tools; the numbers are those of the project's list.

func TestReport1(t *testing.T) {
	check(t, between("{\"ph\":\"X\",\"name\":\"x\x01y\",\"pid\":1,\"tid\":2,\"ts\":3,\"dur\":1}"),
		aAndZ("X  \"x\\x01y\" 1/2 3000+1000"), CodeControlByte)
}

func TestReport2(t *testing.T) {
	res := check(t, between("{\"ph\":\"X\",\"cat\":\"python_function\",\"name\":\"x\ny\",\"pid\":1,\"tid\":2,\"ts\":3,\"dur\":1,\"args\":{\"s\":\"\x02\"}}"),
		aAndZ("X python_function \"x\\ny\" 1/2 3000+1000 s=\"\x02\""), CodeControlByte+"*2")
	if d := res.r.Diagnostics()[0]; d.Offset != int64(len(`{"traceEvents":[`+a+",\n"+`{"ph":"X","cat":"python_function","name":`)) {
		t.Errorf("first offset %d", d.Offset)
	}
}

func TestReport4(t *testing.T) {
	for raw, want := range map[string]string{
		`torch\cuda\__init__.py(219): f`: `torch\cuda\__init__.py(219): f`,
		`C:\users\me`:                    `C:\users\me`,
		`\users\u12`:                     `\users\u12`,
		`torch\nn\modules\module.py`:     `torch\nn\modules\module.py`,
		`a\u0041\"b\\c`:                  `aA"b\c`,
		`a\x41\"b\\c`:                    `a\x41"b\c`,
	} {
		var codes []string
		if strings.Contains(raw, `\m`) || strings.Contains(raw, `\_`) || strings.Contains(raw, `\us`) || strings.Contains(raw, `\x`) {
			codes = append(codes, CodeIllegalEscape)
		}
		check(t, between(`{"ph":"X","name":"`+raw+`","pid":1,"tid":2,"ts":3,"dur":1}`),
			aAndZ(fmt.Sprintf("X  %q 1/2 3000+1000", want)), codes...)
	}
}

func TestReport5(t *testing.T) {
	check(t, "[\n"+a+`,
 {"name": "x", "ph": "s", "ts": 102.95, tid": 0, "pid": "CUDA functions"},
`+z+"\n]", aAndZ(), CodeBrokenEvent)
}

func TestReport7(t *testing.T) {
	junk := `"INFO": ["event_id": 3, "stream": 7"]`
	res := check(t, `{"schemaVersion": 1, `+junk+`, "traceEvents": [`+a+`], "traceName": "t"}`, []string{aWant}, CodeBrokenMetadata)
	if _, ok := res.r.Metadata().Get("traceName"); !ok {
		t.Error("metadata behind the events was lost")
	}
	res = check(t, `{"traceEvents": [`+a+`], `+junk+`, "traceName": "t"}`, []string{aWant}, CodeBrokenMetadata)
	if _, ok := res.r.Metadata().Get("traceName"); !ok {
		t.Error("metadata behind the junk was lost")
	}
	// Other shapes of the same fault.
	for _, junk := range []string{`"INFO": ["a "b" c", "d"]`, `"INFO": {"a": "x"y"}`, `"INFO": "x"y"z"`, `"INFO": [%], "x": }`, `INFO: 1`} {
		res := readAll(`{`+junk+`, "traceEvents": [`+a+`], "traceName": "t"}`, Options{})
		if len(res.events) != 1 || res.codes[CodeBrokenMetadata] == 0 || res.r.Truncated() {
			t.Errorf("%s: %d events, %v", junk, len(res.events), res.codes)
		}
	}
}

func TestReport8(t *testing.T) {
	check(t, between("{\"ph\":\"X\",\"name\":\"config.py(0): \xff\xfe\",\"pid\":1,\"tid\":2,\"ts\":3,\"dur\":1}"),
		aAndZ("X  \"config.py(0): \uFFFD\uFFFD\" 1/2 3000+1000"), CodeInvalidUTF8)
}

func TestReport10(t *testing.T) {
	filler := strings.Repeat(a+",\n", 50000)
	res := readAll("["+filler+"{\"ph\":\"X\",\"name\":\"b\xf0c\",\"pid\":1,\"tid\":2,\"ts\":3,\"dur\":1}]", Options{})
	if n := len(res.events); n != 50001 || res.events[n-1] != "X  \"b\uFFFDc\" 1/2 3000+1000" || res.codes[CodeInvalidUTF8] != 1 {
		t.Errorf("%d events, last %s, %v", n, res.events[n-1], res.codes)
	}
}

func TestReport11(t *testing.T) { TestReport17(t) }

func TestReport13(t *testing.T) {
	check(t, between("{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"\xc0k\",\"pid\":1,\"tid\":2,\"ts\":3,\"dur\":1}"),
		aAndZ("X kernel \"\uFFFDk\" 1/2 3000+1000"), CodeInvalidUTF8)
}

func TestReport14(t *testing.T) {
	for _, nan := range []string{"nan", "NaN", "-nan", "inf", "Infinity", "-Infinity", "-inf", "1.#INF", "-1.#IND"} {
		res := readAll(between(`{"ph":"C","pid":1,"tid":2,"ts":"1587074269993629","args":{"sys": `+nan+`,"user":1}}`), Options{})
		compare(t, res, aAndZ("C  \"\" 1/2 1587074269993629000+- sys="+nan+" user=1"), []string{CodeNotANumber, CodeNumericString})
	}
	v := ParseValue([]byte("nan"))
	if _, ok := v.Float(); ok || v.Kind() != Invalid {
		t.Error("nan is a number")
	}
	for _, s := range []string{`"inf"`, `"nan"`, `"N/A"`, `"Infinity"`} {
		if _, ok := ParseValue([]byte(s)).Float(); ok {
			t.Errorf("%s is a number", s)
		}
	}
}

func TestReport17(t *testing.T) {
	res := check(t, `{"traceEvents":[`+a+","+z+`,{"ph":"X","name":"cu`, aAndZ(), CodeTruncated)
	if !res.r.Truncated() {
		t.Error("not reported as truncated")
	}
	full := between(`{"ph":"X","name":"b","pid":1,"tid":2,"ts":3,"dur":1,"args":{"x":[1,{"y":"z"}]}}`)
	for n := strings.Index(full, a) + len(a); n < len(full); n++ {
		res := readAll(full[:n], Options{})
		if res.err != nil || len(res.events) == 0 || res.events[0] != aWant || !res.r.Truncated() {
			t.Errorf("cut at %d: %v, %v, %v", n, res.err, res.events, res.codes)
		}
		if res.codes[CodeBrokenEvent] != 0 {
			t.Errorf("cut at %d: the cut event counts as broken", n)
		}
	}
}

func TestReport18(t *testing.T) {
	check(t, `[`+a+","+z+",\n", aAndZ(), CodeMissingArrayEnd)
	check(t, `[`+a+","+z, aAndZ(), CodeMissingArrayEnd)
	check(t, `[`+a+","+z+",]", aAndZ(), CodeTrailingComma)
	check(t, `{"traceEvents":[`+a+","+z+",\n]}", aAndZ(), CodeTrailingComma)
}

func TestReport19(t *testing.T) {
	check(t, between(`{"ph":"M","name":"process_name","pid":1,"ts":null}`), aAndZ(`M  "process_name" 1/- -+-`))
	check(t, between(`{"ph":"i","name":"n","pid":1,"ts":null}`), aAndZ(`i  "n" 1/- -+-`), CodeMissingTS)
	check(t, between(`{"ph":"X","name":"n","pid":1,"dur":1}`), aAndZ(`X  "n" 1/- -+1000`), CodeMissingTS)
	check(t, between(`{"ph":"X","name":"n","pid":1,"ts":1}`), aAndZ(`X  "n" 1/- 1000+-`), CodeMissingDur)
}

func TestReport20(t *testing.T) {
	check(t, between(`{"ph":"X","name":"","tid":2,"ts":3,"dur":1}`), aAndZ(`X  "" -/2 3000+1000`), CodeMissingPID)
}

func TestReport22(t *testing.T) {
	for input, want := range map[string]error{
		"garbage":                   ErrNotJSON,
		`{"traceEve`:                ErrNotJSON,
		`{"nodes": [], "edges": 1}`: ErrNotTrace,
		`{"schema": "1.1.0-chakra.0.0.4", "nodes": []}`: ErrExecutionTrace,
	} {
		if res := readAll(input, Options{}); !errors.Is(res.err, want) {
			t.Errorf("%s: error %v, want %v", input, res.err, want)
		}
	}
}

func TestReport25(t *testing.T) {
	for _, input := range []string{
		`{"displayTimeUnit":"ns","traceEvents":[` + a + `]}`,
		`{"traceEvents":[` + a + `],"displayTimeUnit":"ns"}`,
		`{"traceEvents":[` + a + `],"displayTimeUnit":"ms"}`,
	} {
		check(t, input, []string{aWant})
	}
}

func TestReport26(t *testing.T) {
	check(t, between(`{"ph":"X","name":"k","pid":1,"tid":2,"ts":100.7,"dur":0.2}`), aAndZ(`X  "k" 1/2 100700+200`))
}

func TestReport28(t *testing.T) {
	check(t, between(`{"ph":"X","name":"k","pid":1,"tid":2,"ts":3,"dur":-1}`), aAndZ(`X  "k" 1/2 3000+open(-1000)`), CodeNegativeDuration)
}

func TestReport29(t *testing.T) {
	check(t, between(`{"ph":"X","cat":"Kernel","name":"k","pid":1,"tid":2,"ts":0,"dur":0}`), aAndZ(`X Kernel "k" 1/2 0+0`), CodeZeroTime)
}

func TestReport32(t *testing.T) {
	for raw, want := range map[string]string{
		"1732107142997066.682":    "1732107142997066682",
		"1732107143473442.569":    "1732107143473442569",
		"1732107142997066.6825":   "1732107142997066683",
		"1.732107142997066682e15": "1732107142997066682",
		"9223372036854775.807":    "9223372036854775807",
		"-9223372036854775.808":   "-9223372036854775808",
		"0.0005":                  "1",
		"-0.0005":                 "-1",
		"0.00049999999":           "0",
	} {
		res := readAll(`[{"ph":"i","name":"k","pid":1,"tid":2,"ts":`+raw+`}]`, Options{})
		if len(res.events) != 1 || res.events[0] != `i  "k" 1/2 `+want+`+-` {
			t.Errorf("%s: %v", raw, res.events)
		}
	}
	check(t, between(`{"ph":"i","name":"k","pid":1,"tid":2,"ts":9223372036854775.808}`), aAndZ(`i  "k" 1/2 -+-`), CodeTimeOverflow, CodeMissingTS)
	check(t, between(`{"ph":"i","name":"k","pid":1,"tid":2,"ts":1e999999999999}`), aAndZ(`i  "k" 1/2 -+-`), CodeTimeOverflow, CodeMissingTS)
	check(t, between(`{"ph":"i","name":"k","pid":1,"tid":2,"ts":1.00049}`), aAndZ(`i  "k" 1/2 1000+-`), CodeSubNanosecond)
}

func TestReport34(t *testing.T) {
	check(t, between(`{"ph":"X","name":"c","pid":1,"tid":2,"ts":12.000,"dur":3.0000001}`), aAndZ(`X  "c" 1/2 12000+3000`), CodeSubNanosecond)
}

func TestReport37(t *testing.T) {
	check(t, between(`{"ph":"X","name":"k","pid":"1","tid":"2","ts":"213757592882","dur":"143117"}`),
		aAndZ(`X  "k" "1"/"2" 213757592882000+143117000`), CodeNumericString+"*2")
}

func TestReport46(t *testing.T) {
	check(t, `[`+z+","+a+`]`, []string{zWant, aWant})
}

func TestReport115(t *testing.T) {
	s := `{"ph":"s","id":5,"pid":1,"tid":2,"ts":3}`
	check(t, `[`+s+","+s+`]`, []string{`s  "" 1/2 3000+- id=5`, `s  "" 1/2 3000+- id=5`})
}

func TestReport124(t *testing.T) {
	res := readAll(`{"schema": "1.1.0-chakra.0.0.4", "pid": 1, "time": "2023", "start_ts": 1, "nodes": [{"id": 1}`, Options{})
	if !errors.Is(res.err, ErrExecutionTrace) || !strings.Contains(res.err.Error(), "torch.profiler") {
		t.Errorf("error %v", res.err)
	}
	if res := readAll(`{"nodes": [{"id": 1}], "schema": "1.0.1"}`, Options{}); !errors.Is(res.err, ErrExecutionTrace) {
		t.Errorf("nodes first: error %v", res.err)
	}
}

func TestReport145(t *testing.T) {
	res := check(t, `{"metadata": {"a": [1, "x"]}, "traceEvents":[`+a+`]}`, []string{aWant})
	v, ok := res.r.Metadata().Get("metadata")
	if !ok || string(v.Raw()) != `{"a": [1, "x"]}` {
		t.Errorf("metadata %s, %v", v.Raw(), ok)
	}
}

func TestReport149(t *testing.T) {
	for _, form := range []string{`{"backend":"nccl","rank":3}`, "{ \"rank\"\n:\t3 }"} {
		res := check(t, `{"traceEvents":[`+a+`],"distributedInfo":`+form+`}`, []string{aWant})
		info, _ := res.r.Metadata().Get("distributedInfo")
		rank, ok := info.Get("rank")
		if n, isInt := rank.Int(); !ok || !isInt || n != 3 {
			t.Errorf("%s: rank %s", form, rank.Raw())
		}
	}
}

func TestReport153(t *testing.T) {
	check(t, between(`{"ph":"X","name":"k","pid":1,"tid":2,"ts":3,"dur":-1.-500}`), aAndZ(`X  "k" 1/2 3000+-`), CodeBadLiteral, CodeMissingDur)
}

func TestReport158(t *testing.T) {
	full := `{"backend":"nccl","rank":3,"world_size":8}`
	part := `{"rank":3,"nccl_version":"2.17"}`
	for _, order := range [][2]string{{full, part}, {part, full}} {
		res := check(t, `{"distributedInfo":`+order[0]+`,"traceEvents":[`+a+`],"distributedInfo":`+order[1]+`}`,
			[]string{aWant}, CodeDuplicateMetadata)
		info, _ := res.r.Metadata().Get("distributedInfo")
		for key, want := range map[string]string{"backend": `"nccl"`, "rank": "3", "world_size": "8", "nccl_version": `"2.17"`} {
			if v, _ := info.Get(key); string(v.Raw()) != want {
				t.Errorf("%s = %s, want %s", key, v.Raw(), want)
			}
		}
		if n := len(res.r.Metadata().All("distributedInfo")); n != 2 {
			t.Errorf("%d values", n)
		}
	}
	check(t, `{"distributedInfo":{"rank":1},"traceEvents":[`+a+`],"distributedInfo":{"rank":2}}`,
		[]string{aWant}, CodeDuplicateMetadata, CodeConflictMetadata)
}

func TestReport160(t *testing.T) {
	check(t, between(`{"ph":"X","cat":"Trace","name":"PyTorch Profiler (0)","pid":"Spans","tid":"PyTorch Profiler","ts":3,"dur":1}`),
		aAndZ(`X Trace "PyTorch Profiler (0)" "Spans"/"PyTorch Profiler" 3000+1000`))
}

func TestReport163(t *testing.T) {
	check(t, `{"traceEvents":[`+a+`],"x":1,"traceEvents":[`+z+`]}`, aAndZ(), CodeDuplicateArray)
}
