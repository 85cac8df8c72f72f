// Small writes that need no answer: they complete when the target has taken them; a target that takes nothing
// is bypassed; some writes must not use them.
#include "shm/local_memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <new>

#include "support/failing_memory.h"
#include "support/messenger_pair.h"

namespace cluster::shm {
namespace {

using namespace protocol;
using carrier::Outcome;

/// A ring without memory: the test decides how far its reader has come.
class TestRing final : public Recall {
 public:
  struct Item {
    wire::Segment segment;
    std::vector<std::byte> payload;
    bool withdrawn = false;
  };
  TestRing() : Recall({.acknowledges_on_post = true}) {}

  static constexpr Number kFirst = 0xfffffffe;  // two before the wrap

  std::size_t payload_max(const wire::Segment&) const override { return 32768; }
  bool drained() const override { return reader == items.size(); }
  bool post(const wire::Segment& segment, const Gather& payload, PayloadMode, Token) override {
    const test::SpareMemory spare;
    Item item{segment, std::vector<std::byte>(payload.length)};
    payload.copy_to(item.payload.data());
    items.push_back(std::move(item));
    return true;
  }

  bool post_write(const wire::WriteHeader& header, const Gather& payload) override {
    const wire::Segment segment{
        .kind = wire::SegmentKind::write,
        .flags = header.unanswered ? wire::segment_flag::kUnanswered : std::uint8_t{0},
        .length = header.length,
        .id = header.id,
        .offset = header.address,
        .total = header.length,
        .key = header.key};
    return post(segment, payload, PayloadMode::copy, 0);
  }

  Number next() const override { return kFirst + static_cast<Number>(items.size()); }
  Number taken() override { return kFirst + static_cast<Number>(held ? reader : published); }
  Number capacity() const override { return 256; }
  bool take_refusal(Number segment) override { return refusal == segment; }
  bool hold() override {
    ++holds;
    return !taking && (held = true);
  }
  ConstBytes payload(Number segment) const override { return items[segment - kFirst].payload; }
  void withdraw(Number segment) override {
    EXPECT_TRUE(held && segment - kFirst >= reader) << "the reader has it";
    items[segment - kFirst].withdrawn = true;
  }
  void resume() override {
    held = false;
    if (takes_all_at_resume) reader = published = items.size();
  }

  std::vector<Item> items;
  std::size_t reader = 0;     ///< items it has taken
  std::size_t published = 0;  ///< of which the writer knows
  std::optional<Number> refusal;
  int holds = 0;
  bool taking = false;
  bool held = false;
  bool takes_all_at_resume = false;
};

/// The target's regions as the initiator reaches them: notes what was written.
class NotingRegions final : public LocalMemory {
 public:
  Outcome write(std::uint64_t, std::uint64_t address, const Gather& source) override {
    if (outcome == Outcome::done) written.push_back({address, source.length});
    return outcome;
  }
  Outcome judge_write(std::uint64_t, std::uint64_t, std::size_t) override { return outcome; }
  Outcome read(std::uint64_t, std::uint64_t, std::span<const Bytes>, std::size_t, std::size_t) override {
    ++reads;
    return outcome;
  }

  Outcome store(std::uint64_t, std::uint64_t, ConstBytes) override {
    stores += outcome == Outcome::done;
    return outcome;
  }
  Outcome load(std::uint64_t, std::uint64_t, Bytes) override {
    loads += outcome == Outcome::done;
    return outcome;
  }
  /// From now on as if all regions were mapped into this process.
  void map() { maps_some_ = true; }

  int stores = 0, loads = 0;
  Outcome outcome = Outcome::done;
  std::vector<std::pair<std::uint64_t, std::size_t>> written;
  int reads = 0;
};

class PostedWritesTest : public MessengerTest {
 protected:
  PostedWritesTest() { reach(); }

  ~PostedWritesTest() override { left.channel.rma.reached = {}; }

  void reach() {
    auto table = std::make_unique<NotingRegions>();
    reached = table.get();
    table->use_ring(left.channel, ring, list);
    left.channel.rma.reached.access = std::move(table);
    left.channel.carrier = &ring;
  }

  Status put(std::uint64_t address, std::size_t size = 8, WriteOp op = {}) {
    const RmaIov remote[] = {{address, 5, size}};
    return write(keep(pattern(size)), remote, op);
  }
  void order(const Ordering& ordering) {
    EndpointBindings bindings;
    bindings.tx_queue = bindings.rx_queue = &left.completions;
    bindings.ordering = ordering;
    left.messenger.attach(bindings);
  }
  void take(std::size_t count, bool publish = true) {
    ring.reader += count;
    if (publish) ring.published = ring.reader;
  }
  PostedWrites& posted() { return list; }
  std::size_t completed() { return left.take().size(); }
  void lose_patience() {
    posted().settle(1000);
    posted().settle(1000 + LocalMemory::kPatience + 1);
  }

  TestRing ring;
  PostedWrites list{left.messenger.rma(), left.counters};
  NotingRegions* reached = nullptr;
};

TEST_F(PostedWritesTest, CompletesWhenTheTargetHasTakenIt) {
  for (std::uint64_t i = 0; i < 5; ++i) ASSERT_EQ(put(8 * i), Status::ok);
  ASSERT_EQ(ring.items.size(), 5u);
  EXPECT_TRUE(ring.items[0].segment.unanswered());
  EXPECT_TRUE(left.messenger.busy()) << "the engine has to look how far the target is";
  posted().settle(1);
  EXPECT_EQ(completed(), 0u);
  take(3);
  posted().settle(2);
  EXPECT_EQ(completed(), 3u);
  take(2);
  posted().settle(std::nullopt);
  EXPECT_EQ(completed(), 2u);
  EXPECT_FALSE(left.messenger.busy());
  EXPECT_TRUE(reached->written.empty());
}

TEST_F(PostedWritesTest, WithoutMemoryItIsRefusedAndTheNextOneIsPosted) {
  const auto data = pattern(8);
  const RmaIov remote[] = {{0, 5, data.size()}};
  std::size_t refused = 0;
  while (ring.items.size() != 100) {
    for (std::size_t allowed = 0;; ++allowed) {
      try {
        const test::FailingMemory failing(allowed);
        ASSERT_EQ(write(data, remote), Status::ok);
        break;
      } catch (const std::bad_alloc&) {
        ++refused;
      }
    }
  }
  EXPECT_GE(refused, 3u) << "the list, the queue, and its second block";
  take(100);
  posted().settle(1);
  EXPECT_EQ(completed(), 100u);
}

TEST_F(PostedWritesTest, TheTargetExecutesItWithoutAnAnswer) {
  std::vector<std::byte> memory(64);
  RegionTable regions;
  regions.add(5, {memory.data(), 0, memory.size(), true, true, nullptr, nullptr});
  Counter writes;
  EndpointBindings bindings;
  bindings.tx_queue = bindings.rx_queue = &right.completions;
  bindings.regions = &regions;
  bindings.remote_access.writes = &writes;
  right.messenger.attach(bindings);
  put(16);
  put(60);  // the target finds that it does not fit
  right.messenger.arrive(right.channel, ring.items[0].segment, ring.items[0].payload);
  EXPECT_TRUE(right.channel.incoming_write.allowed);
  right.messenger.arrive(right.channel, ring.items[1].segment, ring.items[1].payload);
  EXPECT_FALSE(right.channel.incoming_write.allowed);
  const auto data = pattern(8);
  EXPECT_TRUE(std::equal(data.begin(), data.end(), memory.begin() + 16));
  EXPECT_EQ(writes.value(), 1u);
  EXPECT_TRUE(right.carrier.items.empty()) << "it was answered";
}

TEST_F(PostedWritesTest, APartOfAWriteMustBeAnswered) {
  put(16);
  wire::Segment part = ring.items[0].segment;
  part.total = 9;
  right.messenger.arrive(right.channel, part, ring.items[0].payload);
  part = ring.items[0].segment;
  part.flags |= wire::segment_flag::kMore;
  right.messenger.arrive(right.channel, part, ring.items[0].payload);
  EXPECT_EQ(right.counters.refused_segment, 2u);
}

TEST_F(PostedWritesTest, ARefusalOfTheTargetIsItsError) {
  for (std::uint64_t i = 0; i < 3; ++i) put(8 * i);
  ring.refusal = TestRing::kFirst + 1;
  take(3);
  posted().settle(1);
  const auto done = left.take();
  ASSERT_EQ(done.size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(done[i].status, i == 1 ? Status::access : Status::ok);
}

TEST_F(PostedWritesTest, WhatTheTargetLeavesLyingIsDoneWithoutIt) {
  for (std::uint64_t i = 0; i < 5; ++i) put(8 * i);
  take(2, false);
  posted().settle(1000);
  posted().settle(1000 + LocalMemory::kPatience);
  EXPECT_EQ(completed(), 0u) << "not yet";
  posted().settle(1000 + LocalMemory::kPatience + 1);
  EXPECT_EQ(completed(), 5u);
  ASSERT_EQ(reached->written.size(), 3u) << "two of them the target has done, though it has not said so";
  for (std::uint64_t i = 0; i < 3; ++i) {
    EXPECT_EQ(reached->written[i].first, 8 * (i + 2));
    EXPECT_TRUE(ring.items[i + 2].withdrawn);
  }
  EXPECT_FALSE(ring.held);
}

TEST_F(PostedWritesTest, PatienceBeginsAnewWithEachThatIsTaken) {
  std::uint64_t now = 1000;
  for (std::uint64_t i = 0; i < 10; ++i) put(8 * i);
  for (std::uint64_t i = 0; i < 9; ++i) {
    posted().settle(now);
    take(1);
    posted().settle(now += LocalMemory::kPatience);
  }
  EXPECT_EQ(completed(), 9u);
  EXPECT_TRUE(reached->written.empty());
}

TEST_F(PostedWritesTest, AnInattentiveTargetIsPassedByUntilItTakesSomething) {
  put(0);
  lose_patience();
  EXPECT_EQ(completed(), 1u);
  put(8);
  EXPECT_EQ(completed(), 1u) << "at once";
  EXPECT_EQ(ring.items.size(), 1u);
  take(1);
  put(16);
  EXPECT_EQ(ring.items.size(), 2u);
  EXPECT_EQ(completed(), 0u);
}

TEST_F(PostedWritesTest, OneThatIsAboutToSleepDoesNotWaitForPatience) {
  put(0);
  EXPECT_TRUE(posted().recall());
  EXPECT_EQ(completed(), 1u);
  EXPECT_EQ(reached->written.size(), 1u);
}

TEST_F(PostedWritesTest, ATargetThatIsTakingIsWaitedFor) {
  put(0);
  ring.taking = true;
  EXPECT_FALSE(posted().recall());
  lose_patience();
  EXPECT_EQ(completed(), 0u);
  EXPECT_TRUE(reached->written.empty());
  ring.taking = false;
  EXPECT_TRUE(posted().recall());
  EXPECT_EQ(completed(), 1u);
}

TEST_F(PostedWritesTest, ARegionThatWasClosedMeanwhileIsAnError) {
  put(0);
  reached->outcome = Outcome::denied;
  lose_patience();
  EXPECT_EQ(outcome(left).status, Status::access);
  EXPECT_TRUE(ring.items[0].withdrawn) << "or the target might still execute it";
}

TEST_F(PostedWritesTest, WhatOnlyTheTargetCanDoStaysWhereItIs) {
  put(0);
  put(8);
  reached->outcome = Outcome::unsuited;
  lose_patience();
  EXPECT_EQ(completed(), 0u);
  EXPECT_FALSE(ring.items[0].withdrawn || ring.items[1].withdrawn || ring.held);
  take(2);
  posted().settle(5);
  EXPECT_EQ(completed(), 2u);
}

TEST_F(PostedWritesTest, OthersTakeOtherWays) {
  put(0, LocalMemory::kLengthMax + 1);
  EXPECT_EQ(completed(), 1u) << "by the initiator";
  put(0, 8, {{}, {}, 1, true});
  reached->outcome = Outcome::unsuited;
  put(0);
  ASSERT_EQ(ring.items.size(), 2u);
  EXPECT_FALSE(ring.items[0].segment.unanswered());
  EXPECT_FALSE(ring.items[1].segment.unanswered());
  EXPECT_TRUE(posted().idle());
}

TEST_F(PostedWritesTest, AFenceWaitsForThem) {
  put(0);
  put(8, 8, {{.fence = true}});
  left.messenger.pump();
  EXPECT_EQ(ring.items.size(), 1u);
  take(1);
  posted().settle(1);
  left.messenger.pump();
  EXPECT_EQ(completed(), 1u);
  EXPECT_EQ(ring.items.size(), 2u) << "when its turn has come";
  take(1);
  posted().settle(2);
  EXPECT_EQ(completed(), 1u);
}

TEST_F(PostedWritesTest, WhatTheInitiatorDoesAloneKeepsTheOrderThatWasAskedFor) {
  order({.read_after_write = true, .write_after_write = true});
  put(0);
  std::vector<std::byte> back(8);
  const Bytes slices[] = {back};
  const RmaIov remote[] = {{0, 5, 8}};
  ASSERT_EQ(read(slices, remote), Status::ok);
  put(0, LocalMemory::kLengthMax + 1);
  EXPECT_EQ(reached->reads, 0);
  EXPECT_TRUE(reached->written.empty());
}

/// Segments before it in the ring cannot be taken back with it.
TEST_F(PostedWritesTest, BehindWhatMustComeFirstItIsNotPosted) {
  struct Case {
    Ordering ordering;
    bool behind_message, behind_write;
  };
  for (const Case& each : {Case{{}, true, true}, Case{{.write_after_send = true}, false, false},
                           Case{{.write_after_write = true}, true, false}}) {
    order(each.ordering);
    send(left, pattern(8), 1);
    put(0);
    EXPECT_EQ(ring.items.back().segment.unanswered(), each.behind_message);
    take(ring.items.size() - ring.reader);
    posted().settle(1);
    const std::size_t before = ring.items.size();
    put(0, 8, {{}, {}, 1, true});
    ASSERT_EQ(ring.items.size(), before + 1) << "data for the target goes through the target";
    put(8);
    EXPECT_EQ(ring.items.size() == before + 2 && ring.items.back().segment.unanswered(), each.behind_write);
    left.messenger.fail(left.channel, Status::reset, true);
    reach();
    take(ring.items.size() - ring.reader);
  }
}

TEST_F(PostedWritesTest, NoMoreLieThereThanTheRingRemembers) {
  for (std::uint64_t i = 0; i < 140; ++i) put(8 * i);
  EXPECT_EQ(ring.items.size(), ring.capacity() / 2);
  EXPECT_EQ(completed(), 140 - ring.capacity() / 2);
}

/// Refusals are remembered by slot, and slots are used again.
TEST_F(PostedWritesTest, NoneIsPostedALapBehindAnother) {
  put(0);
  for (std::uint64_t i = 0; i < ring.capacity() / 2; ++i) send(left, pattern(8), i);
  put(8);
  EXPECT_EQ(reached->written.size(), 1u) << "by the initiator";
  take(ring.items.size());
  put(16);
  EXPECT_TRUE(ring.items.back().segment.unanswered());
  EXPECT_EQ(posted().idle(), false);
  take(1);
  posted().settle(1);
  posted().settle(2);
  EXPECT_TRUE(posted().idle());
}

/// The writer does not keep the target from its segments for long.
TEST_F(PostedWritesTest, ManyAreTakenBackInSeveralHolds) {
  for (std::uint64_t i = 0; i < ring.capacity() / 2; ++i) put(8 * i);
  ring.holds = 0;
  EXPECT_TRUE(posted().recall());
  EXPECT_EQ(reached->written.size(), ring.capacity() / 2);
  EXPECT_EQ(ring.holds, 4);
}

/// What it has taken between two holds shows that it polls, though then nothing is left that it could take.
TEST_F(PostedWritesTest, ATargetThatWakesUpBetweenTwoHoldsIsAttentive) {
  for (std::uint64_t i = 0; i < ring.capacity() / 2; ++i) put(8 * i);
  ring.takes_all_at_resume = true;
  EXPECT_TRUE(posted().recall());
  EXPECT_EQ(completed(), ring.capacity() / 2);
  EXPECT_LT(reached->written.size(), ring.capacity() / 2);
  const std::size_t before = ring.items.size();
  put(0);
  EXPECT_EQ(ring.items.size(), before + 1) << "through the ring again";
}

TEST_F(PostedWritesTest, MappedMemoryIsStoredToAndLoadedFrom) {
  std::vector<std::byte> back(8);
  const Bytes slices[] = {back};
  const RmaIov remote[] = {{0, 5, 8}};
  ASSERT_EQ(read(slices, remote), Status::ok);
  EXPECT_EQ(reached->stores + reached->loads, 0);
  reached->map();
  ASSERT_EQ(put(0), Status::ok);
  ASSERT_EQ(read(slices, remote), Status::ok);
  EXPECT_EQ(reached->stores, 1);
  EXPECT_EQ(reached->loads, 1);
  EXPECT_EQ(completed(), 3u) << "at once";
  put(0, 8, {{}, {}, 1, true});
  EXPECT_EQ(reached->stores, 1) << "data for the target goes through the target";
  reached->outcome = Outcome::denied;
  put(0);
  EXPECT_EQ(outcome(left).status, Status::access) << "what must not be stored is refused by the other ways";
}

TEST_F(PostedWritesTest, AStoreDoesNotOvertakeAPostedWriteThatMustComeFirst) {
  order({.write_after_write = true});
  put(0);
  reached->map();
  put(8);
  EXPECT_EQ(reached->stores, 0);
  EXPECT_EQ(ring.items.size(), 2u) << "behind the other";
  take(2);
  posted().settle(1);
  put(16);
  EXPECT_EQ(reached->stores, 1);
}

TEST_F(PostedWritesTest, ALostPeerHasDoneWhatItHasTaken) {
  for (std::uint64_t i = 0; i < 3; ++i) put(8 * i);
  take(2, false);
  left.messenger.fail(left.channel, Status::reset, true);
  const auto done = left.take();
  ASSERT_EQ(done.size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(done[i].status, i == 2 ? Status::reset : Status::ok);
  EXPECT_TRUE(posted().idle());
}

}  // namespace
}  // namespace cluster::shm
