"""JSON values and whether lsh accepts them, written from RFC 8259.

The RFC leaves some choices to the parser. There the verdict is the behaviour of lsh: it accepts a lone surrogate, a
number of any length and 499 nested objects and lists. Beyond the RFC, it accepts NaN and Infinity. Each value is the
value of a field of an object on one line.
"""

# fmt: off

# Values of an unused field.

ACCEPTED = [
    b"[]", b"[ ]", b"[[]]", b"[[],[[]]]", b"{}", b"{ }", b'{"":0}', b'{"a":{"a":{}}}', b'{"a":1,"a":2}',
    b'{"a":1,"a":1}', b'[null,1,"2",{}]', b"[1,null,null,2]", b"[ 1 ]", b"[\t1\t,\t2\t]", b"[1\r]", b' \t"a" ',
    b'{"a" \t:\t1 ,"b":2}', b'{"a\\u0000b":1}', b'{"\\u00e9":1}', b'{"\\ud800":1}', '{"é":"€"}'.encode(),
    b'{"min":-1.0e+28,"max":1.0e+28}', b"true", b"false", b"null", b"[true,false,null]", b"0", b"-0", b"1", b"-1",
    b"123", b"-123", b"0.5", b"-0.5", b"1.5", b"0.0", b"-0.0", b"20e1", b"123.456789", b"0e1", b"0e+1", b"0E-1",
    b"1E-2", b"1E+2", b"1E22", b"1e0", b"1e00", b"123.456e78", b"123e-10000000", b"1e400", b"-1e400", b"1e-400",
    b"0." + b"0" * 60 + b"1", b"100000000000000000000", b"-" + b"237462374673276894279832749832", b"9" * 300,
    b"9" * 5000, b"0." + b"9" * 300, b"1e" + b"0" * 300 + b"1", b"NaN", b"Infinity", b"-Infinity", b"[NaN]",
    *(b"[" * depth + b"]" * depth for depth in (2, 63, 64, 65, 66, 200, 498)),
    *(b'{"a":' * depth + b"1" + b"}" * depth for depth in (2, 63, 64, 65, 66, 200, 498)),
    b'"' + b"[{" * 600 + b'\\""',
]

REFUSED = [
    b"", b" ", b"[", b"]", b"[1", b"[1,", b"[,1]", b"[,]", b"[1,,2]", b"[1,]", b"[1,,]", b"[1 2]", b"[1:2]", b"[1}",
    b"[[1]", b'["a"', b'["a",', b'["a"b]', b"[*]", b"[1]]", b"[1]x", b"[1]1", b"[]{}", b"[a", b"[\\u000A\"\"]",
    b"(1)", b"<.>", b"[<null>]", b"{", b"{]", b"{,", b'{"a"}', b'{"a":}', b'{"a"', b'{"a":', b'{"a":1', b'{"a" 1}',
    b'{"a"::1}', b'{"a",1}', b'{"a":1 1}', b"{:1}", b"{1:1}", b"{null:1}", b"{[]:1}", b"{'a':1}", b"{a:1}",
    b'{"a":1,}', b'{,"a":1}', b'{"a":1 "b":2}', b'{"a":1,,"b":2}', b'{"a":"b"}/**/', b'{"a":"b"}//', b'{"a":/*b*/1}',
    b'{"a":"b"}#', b'{"a":"b"}}', b'{"a":"a" 1}', b'{"a": true"b"}', b'{"a":1}x', b"tru", b"True", b"TRUE", b"truE",
    b"truee", b"fals", b"falsee", b"nul", b"nulll", b"Null", b"undefined", b"t", b"n", b"f", b"nan", b"NAN", b"-NaN",
    b"+NaN", b"Inf", b"-Inf", b"+Inf", b"inf", b"Infinit", b"-Infinit", b"+Infinity", b"NaNa", b"--Infinity", b"+1",
    b"++1", b"--1", b"-", b"- 1", b"-x", b"-a1", b".", b".5", b"-.5", b"1.", b"-1.", b"1.e1", b"1.5.5", b".5e1",
    b"1..5", b"01", b"-01", b"00", b"-00", b"012", b"0x1", b"0x", b"0b1", b"1e", b"1e+", b"1E-", b"1E", b"1e1.5",
    b"1eE2", b"1e++1", b"0e", b"0e+", b"1 000", b"1_000", b"1,5x", b"1a", b"1+2", b"1-2", b"0.3e", b"9.e+", b"-2.",
    b"1ea", b"1L", b"1f", "\uff11".encode(), b"\xff", b"\xe2\x82", b"[\xe9]", b"[\x0b1]", b"[\x0c]", b"\xa0",
    "[\u2060]".encode(), "\ufeff1".encode(), b"[1\x00]", b"\x00", b"[\x1f]", b"#", b"*", b"@", b"%", b"'a'", b"a",
    b"\\", b"\\n", b",", b":", b"}", b"]", "å".encode(), b"1]", b"[" * 200_000,
    b'"\xe2\x82"', b"[" * 200_000 + b"]" * 200_000, b"[" * 500 + b"]" * 500, b'{"a":' * 200_000 + b"1" + b"}" * 200_000,
]

# Values of the text field, and the text. The last rejected values are valid JSON, but not strings.

STRINGS = [
    (b'""', ""), (b'" "', " "), (b'"a"', "a"), (b'"a/b"', "a/b"), (b'"a//b"', "a//b"), (b'"a/*b*/c"', "a/*b*/c"),
    (b'"#"', "#"), (b'"\\""', '"'), (b'"\\\\"', "\\"), (b'"\\/"', "/"), (b'"\\b\\f\\n\\r\\t"', "\b\f\n\r\t"),
    (b'"\\\\n"', "\\n"), (b'"\\\\\\""', '\\"'), (b'"\\\\\\\\"', "\\\\"), (b'"\\\\u0041"', "\\u0041"),
    (b'"\\u005C\\u0022"', '\\"'), (b"\"'\"", "'"), (b'"\\u0041"', "A"), (b'"\\u00e9\\u00E9"', "éé"),
    (b'"\\u0000"', "\0"), (b'"\\u001f"', "\x1f"), (b'"\\u007F"', "\x7f"), (b'"\\u0080"', "\x80"),
    (b'"\\u07ff\\u0800"', "\u07ff\u0800"), (b'"\\u20ac"', "€"), (b'"\\uFFFF\\uFFFE"', "\uffff\ufffe"),
    (b'"\\u2028\\u2029"', "\u2028\u2029"), (b'"\\u200B"', "\u200b"), (b'"\\uFEFF"', "\ufeff"),
    (b'"\\uA66D"', "\ua66d"), (b'"\\ud83d\\ude00"', "😀"), (b'"\\uD834\\uDd1e"', "𝄞"),
    (b'"\\ud800\\udc00"', "\U00010000"), (b'"\\udbff\\udfff"', "\U0010ffff"),
    (b'"a\\ud83d\\ude00\\ud83d\\ude00b"', "a😀😀b"), (b'"\\uD83F\\uDFFE"', "\U0001fffe"), (b'"\x7f"', "\x7f"),
    ('"é€😀"'.encode(), "é€😀"), ('"\u2028\x85"'.encode(), "\u2028\x85"), ('"\U0010ffff"'.encode(), "\U0010ffff"),
    ('"\ufeff\ud7ff\ue000\uffff"'.encode(), "\ufeff\ud7ff\ue000\uffff"), ('"é\\né"'.encode(), "é\né"),
    (b'"\\ud800"', "\ud800"), (b'"\\udc00"', "\udc00"), (b'"\\uDADAx"', "\udadax"),
    (b'"\\udc00\\ud800"', "\udc00\ud800"), (b'"\\ud83d\\u0041"', "\ud83dA"), (b'"\\ud83d\\n"', "\ud83d\n"),
    (b'"\\ud83d\\ud83d\\ude00"', "\ud83d😀"), (b'"a\\udfff"', "a\udfff"),
    *((b'"' + b"x" * i + b"\\n" + b"y" * 9 + b'"', "x" * i + "\n" + "y" * 9) for i in range(17)),
    *((b'"' + b"x" * i + "é".encode() + b"y" * 7 + b'"', "x" * i + "é" + "y" * 7) for i in range(9)),
]

REFUSED_STRINGS = [
    b'"', b'"a', b'a"', b"'a'", b"a", b'"a"b"', b'"a" "b"', b'"a"b', b'"a"+"b"', b"`a`", b'""""', b'"\\"', b'"\\',
    b'"a\\', b'"\\\\\\"', b'"\\ "', b'"\\a"', b'"\\x41"', b'"\\0"', b'"\\\'"', b'"\\v"', b'"\\u"', b'"\\u0"',
    b'"\\u00"', b'"\\u004"', b'"\\u00g1"', b'"\\u 041"', b'"\\u+041"', b'"\\u-041"', b'"\\u0x41"', b'"\\U0041"',
    b'"\\u{41}"', b'"\\ud834\\u"', b'"\\ud834\\u1"', b'"\\ud834\\x"', b'"\\ud834\\', b'"a\tb"', b'"\x00"', b'"\x01"',
    b'"\x1f"', b'"\r"', b'"xxxxxxxx\x1f"', b'"xxxxxxxx\x00x"', '"\\é"'.encode(), b'"\xff"', b'"\x80"', b'"\xc3"',
    b'"\xe9"', b'"\xe2\x82"', b'"\xf0\x9f\x98"', b'"\xc0\xaf"', b'"\xc1\xbf"', b'"\xe0\x80\xaf"', b'"\xe0\x9f\xbf"',
    b'"\xf0\x80\x80\xaf"', b'"\xed\xa0\x80"', b'"\xed\xbf\xbf"', b'"\xf4\x90\x80\x80"', b'"\xf5\x80\x80\x80"',
    b'"\xf8\x88\x80\x80\x80"', b'"\xe2\x82\xac\x82"', b'"\\\xff"', b"null", b"5", b"true", b'["a"]', b'{"a":"b"}',
    b"", b"NaN",
]

# Values of the id field of the second record, and the id.

IDS = [
    (b'"a-7"', b"a-7"), (b'""', b"2"), ('"été"'.encode(), "été".encode()), (b'"\\u00e9"', "é".encode()),
    (b"null", b"2"), (b"NaN", b"NaN"), (b"-Infinity", b"-Infinity"),
    *((digits, digits) for digits in (
        b"7", b"-7", b"0", b"-0", b"0.5", b"1.0", b"1e2", b"1E2", b"1E+05", b"-0.0", b"1e400", b"1.10",
        b"9" * 255, b"9" * 256, b"9" * 257, b"9" * 4300, b"-" + b"9" * 5000, b"0." + b"3" * 300,
        b"9" * 18, b"-" + b"9" * 18, b"9" * 19, b"1" + b"0" * 18, b"-" + b"1" * 30, b"12345678901234567890123",
    )),
]

REFUSED_IDS = [
    b"01", b"+1", b"1.", b"true", b"false", b"[1]", b"{}",
]
