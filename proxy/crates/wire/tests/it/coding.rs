//! Codings undone, whole and broken.

use std::io::Write;

use callbox_wire::coding::{CodingError, ContentDecoder};
use flate2::Compression;
use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};

/// Decodes a body in pieces.
pub(crate) fn decode(coding: Option<&str>, pieces: &[&[u8]]) -> Result<Vec<u8>, CodingError> {
    let mut decoder = ContentDecoder::for_header(coding, 1 << 20).unwrap();
    let mut text = Vec::new();
    let mut out = |bytes: &[u8]| text.extend_from_slice(bytes);
    for piece in pieces {
        decoder.push(piece, &mut out)?;
    }
    decoder.finish(&mut out)?;
    Ok(text)
}

pub(crate) fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

pub(crate) fn zlib(text: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

pub(crate) fn deflate(text: &[u8]) -> Vec<u8> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

pub(crate) fn brotli(text: &[u8]) -> Vec<u8> {
    let mut encoder = brotli::CompressorWriter::new(Vec::new(), 4096, 5, 22);
    encoder.write_all(text).unwrap();
    encoder.into_inner()
}

pub(crate) fn zstd(text: &[u8]) -> Vec<u8> {
    zstd::encode_all(text, 3).unwrap()
}

pub(crate) type Encode = fn(&[u8]) -> Vec<u8>;

/// Each coding with its encoder.
pub(crate) const ENCODERS: [(&str, Encode); 6] = [
    ("gzip", gzip),
    ("X-Gzip", gzip),
    ("deflate", zlib),
    ("deflate", deflate),
    ("br", brotli),
    ("zstd", zstd),
];

const TEXT: &[u8] = br#"{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"The same again, the same again"}]}}"#;

#[test]
fn no_coding_passes_as_it_is() {
    for header in [None, Some(""), Some("identity"), Some(" Identity , ,")] {
        assert!(ContentDecoder::for_header(header, 0).unwrap().is_identity());
        assert_eq!(decode(header, &[b"a", b"b"]).unwrap(), b"ab", "{header:?}");
    }
    let mut decoder = ContentDecoder::for_header(None, 1).unwrap();
    assert_eq!(
        decoder.push(b"more than one", &mut |_| {}),
        Ok(()),
        "nothing expands here"
    );
}

#[test]
fn every_coding_is_undone() {
    for (coding, encode) in ENCODERS {
        assert_eq!(
            decode(Some(coding), &[&encode(TEXT)]).unwrap(),
            TEXT,
            "{coding}"
        );
        assert_eq!(
            decode(Some(coding), &[&encode(b"")]).unwrap(),
            b"",
            "{coding}"
        );
    }
}

#[test]
fn lists_are_undone_from_the_last() {
    let body = brotli(&gzip(TEXT));
    assert_eq!(decode(Some("gzip, br"), &[&body]).unwrap(), TEXT);
    assert_eq!(decode(Some("GZIP,identity,\tbr"), &[&body]).unwrap(), TEXT);
    assert!(decode(Some("br, gzip"), &[&body]).is_err());
}

#[test]
fn too_many_codings_are_refused() {
    let four = ["gzip"; 4].join(", ");
    let body = gzip(&gzip(&gzip(&gzip(TEXT))));
    assert_eq!(decode(Some(&four), &[&body]).unwrap(), TEXT);
    let error = ContentDecoder::for_header(Some(&["gzip"; 5].join(",")), 1).unwrap_err();
    assert_eq!(error.coding, "gzip,gzip,gzip,gzip,gzip");
}

#[test]
fn unknown_codings_are_named() {
    for (header, named) in [
        ("zip", "zip"),
        ("gzip;q=1", "gzip;q=1"),
        ("br, AES128GCM", "AES128GCM"),
    ] {
        let error = ContentDecoder::for_header(Some(header), 1).unwrap_err();
        assert_eq!(error.coding, named);
        assert!(error.to_string().contains(named), "{error}");
    }
    let error = ContentDecoder::for_header(Some(&"é".repeat(1000)), 1).unwrap_err();
    assert_eq!(error.coding.chars().count(), 64);
}

#[test]
fn a_body_without_bytes_is_fine() {
    for (coding, _) in ENCODERS {
        assert_eq!(decode(Some(coding), &[]).unwrap(), b"");
        assert_eq!(decode(Some(coding), &[b""]).unwrap(), b"");
    }
}

#[test]
fn cut_input_is_an_error_wherever_it_is_cut() {
    for (coding, encode) in ENCODERS {
        let body = encode(TEXT);
        for length in 1..body.len() {
            let error = decode(Some(coding), &[&body[..length]]).unwrap_err();
            let corrupt_trailer = coding.ends_with("zip") && length + 8 >= body.len();
            assert!(
                corrupt_trailer || matches!(error, CodingError::Truncated { .. }),
                "{coding} at {length}: {error}"
            );
        }
    }
}

#[test]
fn broken_input_is_an_error_and_stays_one() {
    for (coding, encode) in ENCODERS {
        let mut body = encode(TEXT);
        for byte in &mut body[12..] {
            *byte = !*byte;
        }
        let mut decoder = ContentDecoder::for_header(Some(coding), 1 << 20).unwrap();
        let first = decoder
            .push(&body, &mut |_| {})
            .and_then(|()| decoder.finish(&mut |_| {}))
            .unwrap_err();
        assert_eq!(
            decoder.push(&encode(TEXT), &mut |_| panic!("stopped")),
            Err(first.clone()),
            "{coding}"
        );
        assert_eq!(
            decoder.finish(&mut |_| panic!("stopped")),
            Err(first),
            "{coding}"
        );
    }
}

#[test]
fn a_wrong_checksum_is_an_error() {
    let mut body = gzip(TEXT);
    let at = body.len() - 6;
    body[at] ^= 1;
    assert!(matches!(
        decode(Some("gzip"), &[&body]),
        Err(CodingError::Corrupt { coding: "gzip", .. })
    ));
}

#[test]
fn members_and_frames_follow_one_another() {
    let (first, second) = TEXT.split_at(20);
    for (coding, encode) in [("gzip", gzip as Encode), ("zstd", zstd)] {
        let body = [encode(first), encode(b""), encode(second)].concat();
        assert_eq!(decode(Some(coding), &[&body]).unwrap(), TEXT, "{coding}");
        let bytes: Vec<&[u8]> = body.chunks(1).collect();
        assert_eq!(decode(Some(coding), &bytes).unwrap(), TEXT, "{coding}");
    }
    let padded = [gzip(TEXT), vec![0; 20]].concat();
    assert_eq!(decode(Some("gzip"), &[&padded]).unwrap(), TEXT);
}

#[test]
fn gzip_header_fields_are_skipped() {
    let mut encoder = flate2::GzBuilder::new()
        .filename("a file")
        .comment("a comment")
        .extra([1, 2, 3])
        .write(Vec::new(), Compression::default());
    encoder.write_all(TEXT).unwrap();
    let body = encoder.finish().unwrap();
    let bytes: Vec<&[u8]> = body.chunks(1).collect();
    assert_eq!(decode(Some("gzip"), &bytes).unwrap(), TEXT);
}

/// Feeds what an encoder wrote up to each flush and asks for all of it at once.
fn check_flushes(coding: &str, mut write: impl FnMut(&[u8]) -> Vec<u8>) {
    let mut decoder = ContentDecoder::for_header(Some(coding), 1 << 26).unwrap();
    for number in 0..12 {
        let text = "many pieces ".repeat(number * 1500);
        let event = format!("event: message\ndata: {{\"n\":{number},\"text\":\"{text}\"}}\n\n");
        let mut seen = Vec::new();
        decoder
            .push(&write(event.as_bytes()), &mut |bytes| {
                seen.extend_from_slice(bytes);
            })
            .unwrap();
        assert!(
            seen == event.as_bytes(),
            "{coding}: {} of {}",
            seen.len(),
            event.len()
        );
    }
}

#[test]
fn flushed_events_come_out_at_once() {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
    check_flushes("gzip", |text| {
        gzip.write_all(text).unwrap();
        gzip.flush().unwrap();
        std::mem::take(gzip.get_mut())
    });
    let mut zlib = ZlibEncoder::new(Vec::new(), Compression::default());
    check_flushes("deflate", |text| {
        zlib.write_all(text).unwrap();
        zlib.flush().unwrap();
        std::mem::take(zlib.get_mut())
    });
    let mut brotli = brotli::CompressorWriter::new(Vec::new(), 4096, 5, 22);
    check_flushes("br", |text| {
        brotli.write_all(text).unwrap();
        brotli.flush().unwrap();
        std::mem::take(brotli.get_mut())
    });
    let mut zstd = zstd::Encoder::new(Vec::new(), 3).unwrap();
    check_flushes("zstd", |text| {
        zstd.write_all(text).unwrap();
        zstd.flush().unwrap();
        std::mem::take(zstd.get_mut())
    });
    let mut outer = zstd::Encoder::new(Vec::new(), 3).unwrap();
    let mut inner = GzEncoder::new(Vec::new(), Compression::default());
    check_flushes("gzip, zstd", |text| {
        inner.write_all(text).unwrap();
        inner.flush().unwrap();
        outer.write_all(&std::mem::take(inner.get_mut())).unwrap();
        outer.flush().unwrap();
        std::mem::take(outer.get_mut())
    });
}

#[test]
fn bombs_are_stopped_at_the_limit() {
    let zeros = vec![0; 16 << 20];
    for (coding, encode) in ENCODERS {
        let body = encode(&zeros);
        let mut decoder = ContentDecoder::for_header(Some(coding), 1 << 20).unwrap();
        let mut given = 0;
        let error = decoder
            .push(&body, &mut |bytes| given += bytes.len())
            .unwrap_err();
        assert!(
            matches!(
                error,
                CodingError::Bomb {
                    limit: 0x10_0000,
                    ..
                }
            ),
            "{coding}: {error}"
        );
        let earned = (1 << 20).max(body.len() * 101);
        assert!(given <= earned, "{coding} gave {given} for {}", body.len());
    }
    let nested = gzip(&gzip(&zeros));
    let mut decoder = ContentDecoder::for_header(Some("gzip, gzip"), 1 << 20).unwrap();
    let error = decoder.push(&nested, &mut |_| {}).unwrap_err();
    assert!(matches!(error, CodingError::Bomb { .. }), "{error}");
}

#[test]
fn under_the_limit_any_ratio_is_fine_and_all_comes_out_at_once() {
    let text = [vec![b' '; 700_000], TEXT.to_vec()].concat();
    for (coding, encode) in ENCODERS {
        let body = encode(&text);
        assert!(body.len() * 100 < text.len());
        let mut decoder = ContentDecoder::for_header(Some(coding), 1 << 20).unwrap();
        let mut seen = Vec::new();
        decoder
            .push(&body, &mut |bytes| seen.extend_from_slice(bytes))
            .unwrap();
        assert!(seen == text, "{coding}: {} of {}", seen.len(), text.len());
        decoder.finish(&mut |_| panic!("nothing was left")).unwrap();
    }
}

#[test]
fn long_honest_streams_are_not_bombs() {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    let mut decoder = ContentDecoder::for_header(Some("gzip"), 10_000).unwrap();
    let mut given = 0;
    for number in 0..20_000 {
        encoder
            .write_all(
                format!(
                    "data: {{\"n\":{number},\"square\":{}}}\n\n",
                    number * number
                )
                .as_bytes(),
            )
            .unwrap();
        encoder.flush().unwrap();
        decoder
            .push(&std::mem::take(encoder.get_mut()), &mut |bytes| {
                given += bytes.len();
            })
            .unwrap();
    }
    assert!(given > 500_000);
}

#[test]
fn windows_beyond_the_content_coding_are_refused() {
    let mut encoder = zstd::Encoder::new(Vec::new(), 1).unwrap();
    encoder.window_log(24).unwrap();
    encoder.write_all(TEXT).unwrap();
    let body = encoder.finish().unwrap();
    assert!(matches!(
        decode(Some("zstd"), &[&body]),
        Err(CodingError::Corrupt { coding: "zstd", .. })
    ));
}
