use proptest::prelude::*;

use super::*;

fn packed(docs: &[(Kind, i64, &[u8])]) -> Vec<u8> {
    let mut packer = Packer::new(1).unwrap();
    for (kind, key, body) in docs {
        packer.add(*kind, *key, |out| out.extend_from_slice(body));
    }
    packer.pack().unwrap().data.to_vec()
}

fn unpack(data: &[u8]) -> Result<Block, StoreError> {
    Unpacker::new().unwrap().unpack(1, data)
}

#[test]
fn the_latest_document_of_a_row_is_found() {
    let data = packed(&[
        (Kind::Call, 5, b"open"),
        (Kind::Message, 5, b"message"),
        (Kind::Concluded, 5, b"concluded"),
        (Kind::Mark, 5, b""),
        (Kind::Call, 6, b"other"),
    ]);
    let block = unpack(&data).unwrap();
    assert_eq!(block.find(true, 5), Some(b"concluded".as_slice()));
    assert_eq!(block.find(false, 5), Some(b"message".as_slice()));
    assert_eq!(block.find(true, 7), None);
}

#[test]
fn a_block_packed_to_a_length_has_that_length_and_reads_the_same() {
    let mut packer = Packer::new(1).unwrap();
    packer.add(Kind::Call, 5, |out| out.extend_from_slice(b"payload"));
    let data = packer.pack_to(500).unwrap().data.to_vec();
    assert_eq!(data.len(), 500);
    assert_eq!(
        unpack(&data).unwrap().find(true, 5),
        Some(b"payload".as_slice())
    );
}

#[test]
fn an_emptied_block_has_no_documents() {
    assert_eq!(unpack(&[]).unwrap().docs().count(), 0);
    assert_eq!(unpack(&packed(&[])).unwrap().docs().count(), 0);
}

#[test]
fn every_flipped_byte_is_noticed() {
    let data = packed(&[
        (Kind::Call, 5, b"a payload of some length"),
        (Kind::Call, 9, b"and another one"),
    ]);
    for at in 0..data.len() {
        let mut damaged = data.clone();
        damaged[at] ^= 0x40;
        assert!(unpack(&damaged).is_err(), "byte {at}");
    }
}

/// Blocks on disk are read with it: it cannot change.
#[test]
fn the_dictionary_of_format_1_is_what_it_was() {
    let digest = <sha2::Sha256 as sha2::Digest>::digest(DICTIONARY);
    assert_eq!(
        u64::from_be_bytes(std::array::from_fn(|at| digest[at])),
        0x845f_896c_27ff_31f8
    );
}

proptest! {
    /// Whatever goes in comes out, in order.
    #[test]
    fn what_is_packed_is_unpacked(docs in prop::collection::vec((0_usize..4, any::<i64>(), prop::collection::vec(any::<u8>(), 0..300)), 0..40)) {
        let docs: Vec<_> = docs.iter().map(|(kind, key, body)| (Kind::ALL[*kind], *key, body.as_slice())).collect();
        let block = unpack(&packed(&docs)).unwrap();
        let read: Vec<_> = block.docs().map(|doc| (doc.kind, doc.key, doc.body)).collect();
        prop_assert_eq!(read, docs);
    }

    /// Garbage is an error, never a panic and never a huge allocation.
    #[test]
    fn garbage_is_refused(data in prop::collection::vec(any::<u8>(), 1..400)) {
        let mut framed = data.clone();
        framed.splice(0..0, [FORMAT, 0x28, 0xb5, 0x2f, 0xfd]);
        prop_assert!(unpack(&data).is_err());
        drop(unpack(&framed));
        drop(index(&data));
    }
}
