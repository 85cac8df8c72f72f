// Which accesses take the access lane, and that those which may not overtake something do not.
#include <rdma/fi_rma.h>

#include <array>
#include <cstring>
#include <memory>
#include <vector>

#include "shm/local_memory.h"
#include "unit/api/fast_lane_world.h"

namespace cluster::api::test {
namespace {

using carrier::Outcome;
using shm::RegionEntries;
using shm::RegionEntry;

constexpr std::uint64_t kKey = 5;
constexpr std::uint64_t kStart = 1000;  ///< the remote address of the first byte

/// What both sides share about the one region, and what the accesses that do not take the lane find there.
struct World {
  std::vector<std::uint64_t> table = std::vector<std::uint64_t>(RegionEntries::kBytes / 8);
  RegionEntries entries{std::as_writable_bytes(std::span(table))};
  shm::UsePage page{};
  std::array<std::uint64_t, 1024> words{};
  std::uint32_t number = entries.find_vacant(kKey);
  bool posts = false;  ///< writes may be posted to the ring
  int general = 0;     ///< accesses that did not take the lane
  shm::RegionWindow* window = nullptr;

  World() {
    entries.at(number).key = kKey;
    entries.at(number).generation = 1;
    set_state(RegionEntry::kLive | RegionEntry::kReadable | RegionEntry::kWritable);
  }
  void set_state(std::uint32_t state) { entries.state(number).store(state); }
  Bytes memory() { return std::as_writable_bytes(std::span(words)); }
};

class WindowedMemory final : public shm::LocalMemory {
 public:
  explicit WindowedMemory(World& world) : world_(world) {
    window_.open(world.entries, world.number, world.page, kStart, world.memory());
    world.window = &window_;
  }
  Outcome write(std::uint64_t, std::uint64_t address, const Gather& source) override {
    ++world_.general;
    if (address - kStart + source.length > world_.memory().size()) return Outcome::denied;
    source.copy_to(world_.memory().data() + (address - kStart));
    return Outcome::done;
  }
  Outcome judge_write(std::uint64_t, std::uint64_t, std::size_t) override {
    return world_.posts ? Outcome::done : Outcome::unsuited;
  }
  Outcome read(std::uint64_t, std::uint64_t address, std::span<const Bytes> slices, std::size_t offset,
               std::size_t length) override {
    ++world_.general;
    scatter(slices, offset, ConstBytes(world_.memory()).subspan(address - kStart, length));
    return Outcome::done;
  }

 private:
  World& world_;
};

class Connector final : public shm::RegionConnector {
 public:
  explicit Connector(World& world) : world_(world) {}
  std::unique_ptr<shm::LocalMemory> connect(const SocketAddress&) override {
    return std::make_unique<WindowedMemory>(world_);
  }

 private:
  World& world_;
};

class AccessLaneTest : public FastLaneTest {
 protected:
  AccessLaneTest() {
    platform.open_regions = [this] { return std::make_unique<Connector>(world); };
    info.info.caps |= FI_RMA | FI_FENCE;
  }
  void start_reached() {
    start_connected();
    ASSERT_EQ(write(), 0);  // the first access finds the way to the region
    ASSERT_EQ(await(left.sends, entry), 1);
    world.general = 0;
  }
  ssize_t write(std::uint64_t address = kStart, std::size_t size = 8) {
    ++word;
    return fi_write(left.endpoint, buffer(), size, nullptr, to_right, address, kKey, &word);
  }
  ssize_t read(std::uint64_t address = kStart, std::size_t size = 8) {
    return fi_read(left.endpoint, buffer(), size, nullptr, to_right, address, kKey, &word);
  }
  void* buffer() {
    std::memcpy(bytes_.data(), &word, sizeof word);
    return bytes_.data();
  }
  template <typename Way>
  bool takes_lane(Way&& way) {
    const int before = world.general;
    const std::uint64_t alone = counters(left).rma_alone;
    EXPECT_EQ(way(), 0);
    EXPECT_EQ(counters(left).rma_alone, alone + 1);
    return world.general == before;
  }
  void expect_completion(std::uint64_t flags) {
    entry = {};
    ASSERT_EQ(fi_cq_read(left.sends, &entry, 1), 1);
    EXPECT_EQ(entry.flags, flags);
    EXPECT_EQ(entry.op_context, &word);
  }

  World world;

 private:
  std::vector<std::byte> bytes_ = std::vector<std::byte>(8192);
};

TEST_F(AccessLaneTest, ShortWritesAndReadsTakeIt) {
  start_reached();
  for (int i = 0; i < kFew; ++i) {
    EXPECT_TRUE(takes_lane([&] { return write(kStart + 8); }));
    EXPECT_EQ(world.words[1], word);
    EXPECT_EQ(world.page.entry, 0u);
    expect_completion(FI_RMA | FI_WRITE);
    world.words[2] = 77;
    std::uint64_t got_back = 0;
    EXPECT_TRUE(takes_lane(
        [&] { return fi_read(left.endpoint, &got_back, 8, nullptr, to_right, kStart + 16, kKey, &word); }));
    EXPECT_EQ(got_back, 77u);
    expect_completion(FI_RMA | FI_READ);
    EXPECT_TRUE(
        takes_lane([&] { return fi_inject_write(left.endpoint, &word, 8, to_right, kStart + 24, kKey); }));
    EXPECT_EQ(world.words[3], word);
    EXPECT_EQ(fi_cq_read(left.sends, &entry, 1), -FI_EAGAIN);
  }
  EXPECT_TRUE(takes_lane([&] { return write(kStart, 1); }));
  EXPECT_TRUE(takes_lane([&] { return write(kStart, protocol::ShortWrite::kBytesMax); }));
  EXPECT_FALSE(takes_lane([&] { return write(kStart, protocol::ShortWrite::kBytesMax + 1); }));
}

TEST_F(AccessLaneTest, OnlyRangesInTheWindowTakeIt) {
  start_reached();
  EXPECT_TRUE(takes_lane([&] { return write(kStart + sizeof world.words - 8); }));
  EXPECT_FALSE(takes_lane([&] { return write(kStart + sizeof world.words - 7); }));
  for (int i = 0; i < 2; ++i) fi_cq_read(left.sends, &entry, 1);
  fi_cq_err_entry error{};
  EXPECT_EQ(fi_cq_readerr(left.sends, &error, 0), 1);
  EXPECT_EQ(error.err, FI_EACCES);
  world.window->close();
  EXPECT_FALSE(takes_lane([&] { return write(); }));
}

TEST_F(AccessLaneTest, TheOwnerMayChangeTheRegion) {
  start_reached();
  world.set_state(RegionEntry::kLive | RegionEntry::kReadable);
  EXPECT_FALSE(takes_lane([&] { return write(); }));
  EXPECT_TRUE(takes_lane([&] { return read(); }));
  world.set_state(RegionEntry::kLive | RegionEntry::kReadable | RegionEntry::kWritable |
                  RegionEntry::kReadsServed);
  EXPECT_FALSE(takes_lane([&] { return read(); }));
  EXPECT_TRUE(takes_lane([&] { return write(); }));
  world.set_state(RegionEntry::kClosing | RegionEntry::kReadable | RegionEntry::kWritable);
  EXPECT_FALSE(takes_lane([&] { return write(); }));
  world.set_state(RegionEntry::kLive | RegionEntry::kReadable | RegionEntry::kWritable);
  world.entries.at(world.number).generation = 2;
  EXPECT_FALSE(takes_lane([&] { return write(); })) << "another region has the entry now";
  world.entries.at(world.number).generation = 1;
  EXPECT_TRUE(takes_lane([&] { return write(); }));
  world.page.revoked = 1;
  EXPECT_FALSE(takes_lane([&] { return write(); })) << "the endpoint is closed";
  EXPECT_EQ(world.page.entry, 0u);
}

TEST_F(AccessLaneTest, IsNotTriedWhereItFails) {
  start_reached();
  world.window->close();
  for (int i = 0; i < 4 * kFew; ++i) EXPECT_FALSE(takes_lane([&] { return write(); }));
  world.window->open(world.entries, world.number, world.page, kStart, world.memory());
  EXPECT_FALSE(takes_lane([&] { return write(); })) << "not tried";
  EXPECT_TRUE(takes_lane([&] { return write(); })) << "the last access was to the region in the window";
}

TEST_F(AccessLaneTest, AFenceKeepsAccessesFromIt) {
  start_reached();
  set_op_flags(FI_FENCE);
  EXPECT_FALSE(takes_lane([&] { return write(); }));
  EXPECT_FALSE(takes_lane([&] { return read(); }));
  set_op_flags(FI_INJECT);
  EXPECT_TRUE(takes_lane([&] { return write(); }));
  EXPECT_EQ(write(kStart, protocol::kInjectMax + 1), -FI_EINVAL);
}

TEST_F(AccessLaneTest, CompletionsAreSelective) {
  start_connected(FI_SELECTIVE_COMPLETION);
  ASSERT_EQ(write(), 0);
  EXPECT_TRUE(takes_lane([&] { return write(); }));
  EXPECT_EQ(fi_cq_read(left.sends, &entry, 1), -FI_EAGAIN);
  set_op_flags(FI_COMPLETION);
  EXPECT_TRUE(takes_lane([&] { return write(); }));
  expect_completion(FI_RMA | FI_WRITE);
}

TEST_F(AccessLaneTest, AccessesWaitForPostedWrites) {
  start_reached();
  std::uint64_t target = 0;
  fid_mr* region = nullptr;
  ASSERT_EQ(fi_mr_reg(domain, &target, sizeof target, FI_REMOTE_WRITE, 0, kKey, 0, &region, nullptr), 0);
  world.posts = true;
  ASSERT_EQ(fi_write(left.endpoint, &word, 8, nullptr, to_right, 0, kKey, &word), 0);
  world.posts = false;
  EXPECT_EQ(world.general, 0) << "it was posted";
  EXPECT_FALSE(takes_lane([&] { return write(); }));
  for (int i = 0; i < 2; ++i) ASSERT_EQ(await(left.sends, entry), 1);
  EXPECT_TRUE(takes_lane([&] { return write(); }));
  EXPECT_EQ(fi_close(&region->fid), 0);
}

TEST_F(AccessLaneTest, AccessesWaitForRequests) {
  start_reached();
  std::vector<std::byte> message(1 << 20), into(message.size());
  ASSERT_EQ(fi_tsend(left.endpoint, message.data(), message.size(), nullptr, to_right, kTag, &word), 0);
  EXPECT_FALSE(takes_lane([&] { return write(); })) << "the message waits for its receive";
  ASSERT_EQ(fi_trecv(right.endpoint, into.data(), into.size(), nullptr, FI_ADDR_UNSPEC, kTag, 0, nullptr), 0);
  ASSERT_EQ(await(right.receives, entry), 1);
  for (int i = 0; i < 2; ++i) ASSERT_EQ(await(left.sends, entry), 1);
  ASSERT_EQ(fi_tinject(left.endpoint, &word, 8, to_right, kTag), 0);  // opens the lane again
  EXPECT_TRUE(takes_lane([&] { return write(); }));
}

TEST_F(AccessLaneTest, AnOrderAfterMessagesIsKept) {
  info.tx.msg_order = info.rx.msg_order = FI_ORDER_WAS | FI_ORDER_RAS;
  start_reached();
  turn_both();
  EXPECT_TRUE(takes_lane([&] { return write(); }));
  EXPECT_TRUE(takes_lane([&] { return read(); }));
  const std::uint64_t alone = counters(left).rma_alone;
  ASSERT_EQ(fi_tinject(left.endpoint, &word, 8, to_right, kTag), 0);
  ASSERT_EQ(write(), 0);
  EXPECT_EQ(counters(left).rma_alone, alone) << "the peer has not taken the message, so its library writes";
}

}  // namespace
}  // namespace cluster::api::test
