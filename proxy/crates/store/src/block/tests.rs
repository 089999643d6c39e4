use proptest::prelude::*;

use super::*;

fn packed(docs: &[(Kind, i64, &[u8])]) -> Vec<u8> {
    let mut packer = Packer::new(1).unwrap();
    for (kind, key, body) in docs {
        packer.add(*kind, *key, |out| out.extend_from_slice(body));
    }
    packer.pack().unwrap().data.to_vec()
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
    let block = Block::unpack(1, &data).unwrap();
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
        Block::unpack(1, &data).unwrap().find(true, 5),
        Some(b"payload".as_slice())
    );
}

#[test]
fn an_emptied_block_has_no_documents() {
    assert_eq!(Block::unpack(1, &[]).unwrap().docs().count(), 0);
    assert_eq!(Block::unpack(1, &packed(&[])).unwrap().docs().count(), 0);
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
        assert!(Block::unpack(1, &damaged).is_err(), "byte {at}");
    }
}

proptest! {
    /// Whatever goes in comes out, in order.
    #[test]
    fn what_is_packed_is_unpacked(docs in prop::collection::vec((0_usize..4, any::<i64>(), prop::collection::vec(any::<u8>(), 0..300)), 0..40)) {
        let docs: Vec<_> = docs.iter().map(|(kind, key, body)| (Kind::ALL[*kind], *key, body.as_slice())).collect();
        let block = Block::unpack(1, &packed(&docs)).unwrap();
        let read: Vec<_> = block.docs().map(|doc| (doc.kind, doc.key, doc.body)).collect();
        prop_assert_eq!(read, docs);
    }

    /// Garbage is an error, never a panic and never a huge allocation.
    #[test]
    fn garbage_is_refused(data in prop::collection::vec(any::<u8>(), 1..400)) {
        let mut framed = data.clone();
        framed.splice(0..0, [0x28, 0xb5, 0x2f, 0xfd]);
        prop_assert!(Block::unpack(1, &data).is_err());
        drop(Block::unpack(1, &framed));
        drop(index(&data));
    }
}
