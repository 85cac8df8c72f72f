// Which peers reach registered memory over the network: members of the address vector, and those that have a
// key that the provider has drawn.
#include <gtest/gtest.h>

#include <array>

#include "protocol/region_table.h"
#include "support/node.h"

namespace cluster::engine {
namespace {

using test::kA;
using test::kB;
using test::kUnknownSource;
using test::Node;

class ForeignAccessTest : public test::EngineTest {
 protected:
  ForeignAccessTest() {
    serving.engine.attach(serving.book,
                          {.tx_queue = &serving.sent, .rx_queue = &serving.received, .regions = &regions});
  }
  /// The memory that key 1 opens.
  void offer(bool drawn_key) {
    regions.add(1, {.base = memory.data(),
                    .length = memory.size(),
                    .readable = true,
                    .writable = true,
                    .drawn_key = drawn_key});
  }
  /// A write, a long write, a read and an atomic; returns how many were refused.
  std::size_t refusals() {
    caller.word = 0x1111;
    const ConstBytes word = as_bytes(&caller.word, sizeof caller.word);
    const Bytes target = as_bytes(&caller.got, sizeof caller.got);
    const ConstBytes much(bytes.data(), bytes.size() - kApart);
    const protocol::RmaIov first{0, 1, word.size()};
    const protocol::RmaIov whole{kApart, 1, much.size()};
    protocol::WriteOp long_write;
    long_write.remote = {&whole, 1};
    long_write.slices = {&much, 1};
    long_write.length = much.size();
    EXPECT_EQ(caller.engine.write(long_write), Status::ok);
    protocol::WriteOp write;
    write.remote = {&first, 1};
    write.slices = {&word, 1};
    write.length = word.size();
    EXPECT_EQ(caller.engine.write(write), Status::ok);
    protocol::ReadOp read;
    read.remote = {&first, 1};
    read.slices = {&target, 1};
    read.length = target.size();
    EXPECT_EQ(caller.engine.read(read), Status::ok);
    protocol::AtomicRmaOp atomic;
    atomic.remote = {&first, 1};
    atomic.slices = {&word, 1};
    atomic.length = word.size();
    atomic.code = {.op = wire::AtomicOp::bor, .type = wire::AtomicType::uint64, .fetch = false};
    EXPECT_EQ(caller.engine.atomic(atomic), Status::ok);
    std::size_t refused = 0;
    std::size_t seen = 0;
    const auto any = [](const protocol::Completion&) { return true; };
    for (int turn = 0; turn < 1000 && seen < 4; ++turn) {
      pass(serving, caller);
      seen += caller.sent.drain(4, any, [&](const protocol::Completion& each) {
        refused += each.status == Status::access ? 1 : 0;
      });
    }
    EXPECT_EQ(seen, 4u);
    return refused;
  }

  static constexpr std::size_t kApart = 64;  ///< where the long write begins
  std::array<std::byte, 256 * 1024> memory{};
  std::array<std::byte, 256 * 1024> bytes{};
  protocol::RegionTable regions;
  Node serving{network, kA, kB, 1000};
  Node caller{network, kUnknownSource, kA, 1000};
};

TEST_F(ForeignAccessTest, MemoryIsForMembersOfTheAddressVector) {
  offer(false);
  bytes[9] = std::byte{9};
  EXPECT_EQ(refusals(), 4u);
  EXPECT_EQ(memory[0], std::byte{0});
  EXPECT_EQ(memory[kApart + 9], std::byte{0});
  EXPECT_EQ(caller.got, 0u);
  EXPECT_EQ(serving.counters().refused_access, 4u);
  const AddressTable::Handle handle = serving.book.insert(kUnknownSource);
  EXPECT_EQ(refusals(), 0u) << "inserted after it has called";
  EXPECT_EQ(memory[0], std::byte{0x11});
  EXPECT_EQ(memory[kApart + 9], std::byte{9});
  serving.book.remove(handle);
  EXPECT_EQ(refusals(), 4u);
}

TEST_F(ForeignAccessTest, AKeyThatTheProviderHasDrawnIsEnough) {
  offer(true);
  EXPECT_EQ(refusals(), 0u);
  EXPECT_EQ(memory[0], std::byte{0x11});
  EXPECT_EQ(serving.counters().refused_access, 0u);
}

TEST_F(ForeignAccessTest, AnUnknownSourceDoesNotTryKeysForLong) {
  for (int i = 0; i < 16; ++i) refusals();
  EXPECT_EQ(serving.counters().refused_access, 64u);
  EXPECT_EQ(serving.counters().sessions_closed, 1u);
}

TEST_F(ForeignAccessTest, AMemberThatErrsKeepsItsSession) {
  serving.book.insert(kUnknownSource);
  for (int i = 0; i < 20; ++i) EXPECT_EQ(refusals(), 4u);
  EXPECT_EQ(serving.counters().refused_access, 80u);
  EXPECT_EQ(serving.counters().sessions_closed, 0u);
}

}  // namespace
}  // namespace cluster::engine
