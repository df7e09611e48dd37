use std::sync::Arc;

use longhaul::Models;
use longhaul::edits::{Edit, EditId, EditPrice, EditText};
use longhaul::session::journal::Allowed;
use longhaul::size::{Billed, Measure};
use longhaul::summary::SummaryPaid;

use super::*;

/// Tokens of system prompt and tools.
const FIXED: u64 = 4_000;

/// The account of a journal that is written by hand.
struct Journal {
    account: Account,
    tickets: u64,
}

impl Journal {
    fn of(model: &str) -> Self {
        let model = Models::builtin().find(model).clone();
        let session = Session::new(longhaul::Profile::longhaul(), model);
        Self { account: Account::of(&session, None), tickets: 0 }
    }

    fn entry(&mut self, entry: Entry) -> Costs {
        self.account.read(&entry, FIXED);
        let new = std::mem::take(&mut self.account.new);
        self.account.total += new;
        new
    }

    fn fold(&mut self) {
        self.edit(Why::PaysBack);
    }

    fn edit(&mut self, why: Why) {
        let kind = EditKind::Hide { spans: Vec::new(), text: EditText::Here("".into()) };
        let edit = Edit {
            id: EditId(0),
            kind,
            strategy: "test".into(),
            why,
            before: Tokens::ZERO,
            after: Tokens::ZERO,
            price: EditPrice::default(),
            originals: Vec::new(),
            depends: Vec::new(),
            voice: None,
        };
        self.entry(Entry::Edit(Arc::new(edit)));
    }

    /// A call whose view is so large, of so much in all; the rest is what it has in common with the call before and what
    /// the provider read and wrote.
    fn call(&mut self, sizes: [u64; 2], common: u64, broke: bool, charged: [u64; 2]) -> Costs {
        self.call_of(sizes[0], sizes, common, broke, charged)
    }

    /// The same, where the provider counts another size than we do.
    fn call_of(
        &mut self,
        prompt: u64,
        [view, whole]: [u64; 2],
        common: u64,
        broke: bool,
        charged: [u64; 2],
    ) -> Costs {
        self.tickets += 1;
        let mut sum = self.entry(Entry::Sent(SentRequest {
            ticket: Ticket(self.tickets),
            time: None,
            size: Measure::default(),
            prompt: Tokens(view),
            billed: Billed { read: Tokens(common), written: Tokens(view - common) },
            broke,
            cold: false,
            closed: false,
            large: false,
            excess: Tokens::ZERO,
            whole: Tokens(whole),
            prefix: None,
            after: None,
        }));
        sum += self.billed(prompt, charged);
        sum
    }

    fn billed(&mut self, prompt: u64, [read, written]: [u64; 2]) -> Costs {
        let charged = Charged {
            read: Tokens(read),
            written: Tokens(written),
            written_1h: Tokens::ZERO,
            output: Tokens(100),
        };
        let ticket = Ticket(self.tickets);
        self.entry(Entry::Usage { ticket, prompt: Tokens(prompt), charged: Some(charged) })
    }
}

/// Dollars × 10¹² of a call of Claude Sonnet 4.5: 3, 0.30, 3.75 and 15 dollars a million.
fn sonnet(input: u128, read: u128, written: u128, output: u128) -> u128 {
    input * 3_000_000 + read * 300_000 + written * 3_750_000 + output * 15_000_000
}

#[test]
fn where_nothing_is_left_out_both_sums_are_the_same() {
    let mut journal = Journal::of("claude-sonnet-4-5");
    journal.call([10_000, 10_000], 0, false, [0, 9_000]);
    journal.call([15_000, 15_000], 10_000, false, [9_500, 5_400]);
    // The cache forgot most of it.
    journal.call([16_000, 16_000], 15_000, false, [3_000, 12_000]);
    // The client has other tools: nothing is read.
    journal.entry(Entry::Frame(Arc::default()));
    // We counted less than the provider does.
    journal.call_of(17_000, [16_100, 16_100], 0, true, [0, 17_000]);
    // The same request again.
    journal.billed(17_000, [17_000, 0]);
    let Costs { calls, billed, otherwise, folds, .. } = journal.account.total;
    assert_eq!((calls, folds, billed), (5, 0, otherwise));
    assert_eq!(billed.pico, sonnet(1_000 + 100 + 1_000, 29_500, 43_400, 500));
}

/// After a fold the client alone would have gone on reading all that it had sent.
#[test]
fn a_fold_is_compared_with_sending_everything() {
    let mut journal = Journal::of("claude-sonnet-4-5");
    journal.call([10_000, 10_000], 0, false, [0, 10_000]);
    journal.call([100_000, 100_000], 10_000, false, [10_000, 90_000]);
    assert_eq!(journal.account.total.billed, journal.account.total.otherwise);
    journal.fold();
    let fold = journal.call([30_000, 110_000], 5_000, true, [5_000, 25_000]);
    assert_eq!(fold.folds, 1);
    assert_eq!(fold.billed.pico, sonnet(0, 5_000, 25_000, 100));
    assert_eq!(fold.otherwise.pico, sonnet(0, 100_000, 10_000, 100));
    // It was worse so far.
    let Costs { billed, otherwise, .. } = journal.account.total;
    assert!(billed.pico > otherwise.pico);
    let next = journal.call([35_000, 115_000], 30_000, false, [30_000, 5_000]);
    assert_eq!(next.billed.pico, sonnet(0, 30_000, 5_000, 100));
    assert_eq!(next.otherwise.pico, sonnet(0, 110_000, 5_000, 100));
    for n in 1..=3 {
        let (view, whole) = (35_000 + n * 1_000, 115_000 + n * 1_000);
        journal.call([view, whole], view - 1_000, false, [view - 1_000, 1_000]);
    }
    let Costs { billed, otherwise, .. } = journal.account.total;
    assert!(billed.pico < otherwise.pico);
    assert_eq!(billed.tokens.output, otherwise.tokens.output);
}

/// A client that writes the end of its request anew each time leaves what we left out where it was.
#[test]
fn what_was_left_out_would_have_been_read_too_where_the_client_changes_what_stands_behind() {
    let mut journal = Journal::of("claude-sonnet-4-5");
    journal.call([100_000, 100_000], 0, false, [0, 100_000]);
    journal.fold();
    journal.call([30_000, 101_000], FIXED, true, [FIXED, 30_000 - FIXED]);
    let next = journal.call([31_000, 102_000], 28_000, true, [28_000, 3_000]);
    assert_eq!(next.otherwise.pico, sonnet(0, 28_000 + 71_000, 3_000, 100));
    // Other tools: nothing of either is read.
    let anew = journal.call([31_000, 102_000], 0, true, [0, 31_000]);
    assert_eq!(anew.otherwise.pico, sonnet(0, 0, 102_000, 100));
}

/// Of the first call of a fork nothing is known of the call before.
#[test]
fn what_was_left_out_before_a_fork_would_have_been_read_too() {
    let mut journal = Journal::of("claude-sonnet-4-5");
    let fork = journal.call([30_000, 101_000], 0, false, [27_000, 3_000]);
    assert_eq!(fork.otherwise.pico, sonnet(0, 27_000 + 71_000, 3_000, 100));
    // The provider has nothing of either.
    let mut cold = Journal::of("claude-sonnet-4-5");
    let anew = cold.call([30_000, 101_000], 0, false, [0, 30_000]);
    assert_eq!(anew.otherwise.pico, sonnet(0, 0, 101_000, 100));
}

/// Where a provider's cache returns half of what it was sent, it would have returned half of the rest too.
#[test]
fn the_cache_returns_the_same_share_of_what_was_left_out() {
    let mut journal = Journal::of("claude-sonnet-4-5");
    journal.call([100_000, 100_000], 0, false, [0, 100_000]);
    journal.call([101_000, 101_000], 100_000, false, [50_000, 51_000]);
    journal.fold();
    let fold = journal.call([30_000, 102_000], 0, true, [0, 30_000]);
    assert_eq!(fold.otherwise.pico, sonnet(0, 50_500, 51_500, 100));
    let next = journal.call([31_000, 103_000], 30_000, false, [15_000, 16_000]);
    assert_eq!(next.otherwise.pico, sonnet(0, 51_000, 52_000, 100));
}

/// Beyond its window the client compacts: one call for a summary of 2,500 tokens, after which the newest 20,000 tokens
/// are left.
#[test]
fn beyond_its_window_the_client_would_have_compacted() {
    let mut journal = Journal::of("claude-sonnet-4-5");
    // A window of ours that is smaller says nothing of the client's.
    journal.entry(Entry::Limited(Allowed { window: Some(Tokens(60_000)), ..Allowed::default() }));
    journal.call([150_000, 150_000], 0, false, [0, 150_000]);
    journal.fold();
    // 80 % of 200,000 are full.
    let full = journal.call([30_000, 170_000], FIXED, true, [FIXED, 26_000]);
    let left = u128::from(FIXED) + 2_500 + 20_000;
    let compaction = sonnet(0, 170_000, 0, 2_500);
    assert_eq!(full.otherwise.pico, compaction + sonnet(0, 4_000, left - 4_000, 100));
    let next = journal.call([35_000, 175_000], 30_000, false, [30_000, 5_000]);
    assert_eq!(next.otherwise.pico, sonnet(0, left, 5_000, 100));
    // A provider whose window is smaller than the model's has it compact earlier.
    journal.entry(Entry::Refused {
        ticket: None,
        size: Tokens::ZERO,
        window: Some(Tokens(32_000)),
        answer: None,
    });
    let early = journal.call([36_000, 176_000], 35_000, false, [35_000, 1_000]);
    assert_eq!(early.otherwise.tokens.output, 100 + 2_500);
}

#[test]
fn summaries_that_we_paid_for_are_a_part_of_our_bill() {
    let mut journal = Journal::of("claude-sonnet-4-5");
    let prompt = Billed { read: Tokens(20_000), written: Tokens(1_000) };
    let paid = SummaryPaid { calls: 1, prompt, output: Tokens(2_000) };
    journal.entry(Entry::SummaryPaid { job: 1, paid });
    let Costs { calls, billed, otherwise, .. } = journal.account.total;
    assert_eq!((calls, billed.pico), (0, sonnet(1_000, 20_000, 0, 2_000)));
    assert_eq!(otherwise, Spent::default());
}

#[test]
fn a_model_without_a_price_is_counted_in_tokens() {
    let mut journal = Journal::of("nobody-knows-it");
    journal.call([10_000, 10_000], 0, false, [0, 0]);
    let Costs { unpriced, billed, .. } = journal.account.total;
    assert_eq!((unpriced, billed.pico, billed.tokens.prompt()), (1, 0, 10_000));
    // Noise that is cut before a message is ever sent is no fold.
    journal.edit(Why::Entry);
    assert_eq!(journal.call([11_000, 11_000], 10_000, false, [0, 0]).folds, 0);
}
