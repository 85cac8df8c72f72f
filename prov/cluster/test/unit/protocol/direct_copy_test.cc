// Large messages between two messengers that can reach each other's memory: both copy. Wherever and whenever
// a copy is refused, the message arrives complete and once.
#include <algorithm>
#include <numeric>

#include "support/messenger_pair.h"

namespace cluster::protocol {
namespace {

/// This process's own memory in the role of the peer's; refuses after so many copies.
struct OwnMemory final : CrossMemory {
  std::size_t reads_left = ~std::size_t{0}, writes_left = ~std::size_t{0};
  std::size_t bytes_read = 0, bytes_written = 0;

  bool read(std::uint64_t address, std::span<const Bytes> slices, std::size_t offset,
            std::size_t length) override {
    if (reads_left == 0) return false;
    --reads_left;
    bytes_read += length;
    scatter(slices, offset, as_bytes(reinterpret_cast<const void*>(address), length));
    return true;
  }
  bool write(std::uint64_t address, const Gather& source) override {
    if (writes_left == 0) return false;
    --writes_left;
    bytes_written += source.length;
    source.copy_to(reinterpret_cast<std::byte*>(address));
    return true;
  }
};

class DirectCopyTest : public MessengerTest {
 protected:
  DirectCopyTest() {
    for (Side* const side : {&left, &right}) side->carrier.set_ring(true);
    left.channel.memory = &of_right;
    right.channel.memory = &of_left;
  }

  /// One message of that size from left to right; checks it and the completions of both sides.
  void exchange(std::size_t size, std::size_t capacity) {
    const std::vector<std::byte> sent = pattern(size);
    std::vector<std::byte> got(capacity + 1, std::byte{0x5a});
    ASSERT_EQ(receive(right, {got.data(), capacity}, 5), Status::ok);
    ASSERT_EQ(send(left, sent, 5), Status::ok);
    run();
    check(sent, got, capacity);
  }

  void check(const std::vector<std::byte>& sent, const std::vector<std::byte>& got, std::size_t capacity) {
    const std::size_t length = std::min(sent.size(), capacity);
    EXPECT_TRUE(std::equal(sent.begin(), sent.begin() + static_cast<std::ptrdiff_t>(length), got.begin()));
    EXPECT_EQ(got[capacity], std::byte{0x5a});
    const std::vector<Completion> ends = right.take();
    ASSERT_EQ(ends.size(), 1U);
    EXPECT_EQ(ends[0].status, sent.size() > capacity ? Status::truncated : Status::ok);
    EXPECT_EQ(ends[0].length, length);
    EXPECT_EQ(left.take().size(), 1U);
    EXPECT_EQ(right.counters.refused_segment + left.counters.refused_segment, 0U);
    EXPECT_FALSE(left.messenger.busy() || right.messenger.busy());
  }

  OwnMemory of_left, of_right;  ///< seen from the other side
};

TEST_F(DirectCopyTest, BothSidesCopyAndNothingTravels) {
  exchange(1 << 20, 1 << 20);
  EXPECT_EQ(of_left.bytes_read + of_right.bytes_written, std::size_t{1} << 20);
  EXPECT_GT(of_left.bytes_read, std::size_t{1} << 18);
  EXPECT_GT(of_right.bytes_written, std::size_t{1} << 18);
}

TEST_F(DirectCopyTest, EverySizeAroundWhatIsDecidedByIt) {
  for (const std::size_t edge : {4001, 8192, 16384, 32768, 65536, 131072, 262144, 3 << 18}) {
    for (std::size_t size = edge - 1; size <= edge + 1; ++size) {
      SCOPED_TRACE(size);
      exchange(size, size);
    }
  }
}

TEST_F(DirectCopyTest, TruncatedIsCopiedOnlyAsFarAsThereIsSpace) { exchange(300'000, 100'001); }

TEST_F(DirectCopyTest, AnEarlyAnnouncementKeepsTheOffer) {
  const std::vector<std::byte> sent = pattern(200'000);
  std::vector<std::byte> got(200'001, std::byte{0x5a});
  ASSERT_EQ(send(left, sent, 5), Status::ok);
  run();
  ASSERT_EQ(receive(right, {got.data(), sent.size()}, 5), Status::ok);
  run();
  check(sent, got, sent.size());
  EXPECT_EQ(of_left.bytes_read + of_right.bytes_written, sent.size());
}

TEST_F(DirectCopyTest, FallsBackToBulkWhereMemoryCannotBeReached) {
  for (std::size_t reads = 0; reads < 5; ++reads) {
    for (std::size_t writes = 0; writes < 5; ++writes) {
      SCOPED_TRACE(std::to_string(reads) + " reads, " + std::to_string(writes) + " writes");
      left.channel.memory = &of_right;
      right.channel.memory = &of_left;
      of_left.reads_left = reads;
      of_right.writes_left = writes;
      exchange(700'000, 700'000);
    }
  }
}

TEST_F(DirectCopyTest, ScatteredReceiversAreServedToo) {
  const std::vector<std::byte> sent = pattern(400'000);
  std::vector<std::byte> got(sent.size() + 1, std::byte{0x5a});
  const Bytes slices[] = {{got.data(), 100'001}, {got.data() + 100'001, 7}, {got.data() + 100'008, 299'992}};
  const RecvOp order{.slices = slices, .context = nullptr, .tag = 5, .ignore = 0, .tagged = true};
  ASSERT_EQ(right.messenger.matcher().receive(nullptr, order), Status::ok);
  ASSERT_EQ(send(left, sent, 5), Status::ok);
  run();
  check(sent, got, sent.size());
}

TEST_F(DirectCopyTest, ManyAtOnceShareTheTurns) {
  constexpr std::size_t kCount = 12;
  std::vector<std::vector<std::byte>> got(kCount);
  for (std::size_t i = 0; i < kCount; ++i) {
    got[i].resize(50'000 + i * 40'000);
    ASSERT_EQ(receive(right, got[i], i), Status::ok);
  }
  for (std::size_t i = 0; i < kCount; ++i) ASSERT_EQ(send(left, pattern(got[i].size()), i), Status::ok);
  run();
  for (const auto& bytes : got) EXPECT_EQ(bytes, pattern(bytes.size()));
  EXPECT_EQ(right.take().size(), kCount);
  EXPECT_EQ(left.take().size(), kCount);
}

TEST_F(DirectCopyTest, UnrequestedPlacementIsRefused) {
  std::vector<std::byte> got(100'000);
  ASSERT_EQ(receive(right, got, 5), Status::ok);
  wire::Segment placed;
  placed.kind = wire::SegmentKind::placed;
  placed.total = 100'000;
  for (std::uint32_t id = 0; id < 8; ++id) {
    placed.peer_id = id;
    right.messenger.arrive(right.channel, placed, {});
  }
  EXPECT_EQ(right.counters.refused_segment, 8U);
  EXPECT_TRUE(right.take().empty());
}

TEST_F(DirectCopyTest, ALostPeerEndsWhatIsInFlight) {
  std::vector<std::byte> got(1 << 20);
  ASSERT_EQ(receive(right, got, 5), Status::ok);
  ASSERT_EQ(send(left, pattern(1 << 20), 5), Status::ok);
  left.messenger.pump();
  carry(left, right);
  right.messenger.pump();
  EXPECT_TRUE(right.messenger.busy());
  right.messenger.fail(right.channel, Status::reset, true);
  const std::vector<Completion> ends = right.take();
  ASSERT_EQ(ends.size(), 1U);
  EXPECT_EQ(ends[0].status, Status::reset);
  EXPECT_FALSE(right.messenger.busy());
}

}  // namespace
}  // namespace cluster::protocol
