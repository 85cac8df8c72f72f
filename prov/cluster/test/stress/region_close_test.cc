// Several processes write into regions, through the kernel and through mappings of their own, while these are
// closed and registered again: once a region is closed not one byte of its memory changes any more.
// CLUSTER_STRESS_ROUNDS says how many are closed (util/long: a million). Many are open at a time, since the processes
// share few processors: a turn takes as long as it takes until each has had one.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <numeric>
#include <vector>

#include "os/system_clock.h"
#include "os/wait_set.h"
#include "shm/peer_regions.h"
#include "shm/region_directory.h"
#include "support/fake_environment.h"

namespace cluster::shm {
namespace {

using carrier::Outcome;

constexpr int kInitiators = 4;
constexpr std::uint64_t kRegions = 32;
constexpr std::size_t kSize = 16 * 1024;
constexpr std::byte kOurs{0x55};
constexpr std::byte kTheirs{0xEE};

#ifdef CLUSTER_SANITIZED
constexpr std::uint64_t kRounds = 30 * kRegions;
#else
constexpr std::uint64_t kRounds = 100 * kRegions;
#endif

std::uint64_t rounds() {
  const char* const wanted = std::getenv("CLUSTER_STRESS_ROUNDS");
  return wanted != nullptr ? std::strtoull(wanted, nullptr, 10) : kRounds;
}

/// What the initiators count, in memory that all processes share.
struct Tally {
  std::atomic<std::uint64_t> written;
  std::atomic<std::uint64_t> stored;  ///< through mappings
  std::atomic<std::uint64_t> denied;
};

[[noreturn]] void fire(const SocketAddress& name, int number, Tally& tally) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  test::FakeLog log;
  test::FakeRandom random(static_cast<std::uint64_t>(number) + 1);
  PeerRegionConnector connector(random, log, {}, 10s);
  auto regions = connector.connect(name);
  const std::vector<std::byte> bytes(kSize, kTheirs);
  const ConstBytes slices[] = {bytes};
  constexpr std::size_t kSizes[] = {8, 1024, 4096, kSize};
  for (;;) {
    const std::size_t size = kSizes[random.below(std::size(kSizes))];
    const std::uint64_t offset = random.below(kSize - size + 1);
    if (regions == nullptr) {
      regions = connector.connect(name);
      continue;
    }
    const std::uint64_t key = random.below(kRegions);
    if (regions->store(key, offset, ConstBytes(bytes).first(size)) == Outcome::done) {
      tally.stored.fetch_add(1, std::memory_order_relaxed);
      continue;
    }
    switch (regions->write(key, offset, {slices, 0, size})) {
      case Outcome::done: tally.written.fetch_add(1, std::memory_order_relaxed); break;
      case Outcome::denied: tally.denied.fetch_add(1, std::memory_order_relaxed); break;
      case Outcome::unsuited:
      case Outcome::pending: break;
    }
  }
}

bool untouched(ConstBytes memory) {
  static const std::vector<std::byte> ours(kSize, kOurs);
  return std::memcmp(memory.data(), ours.data(), kSize) == 0;
}

/// One of the turns that wait for stores: initiators have to find the mapping first.
bool wait_for_a_store(os::SystemClock& clock, const Tally& tally) {
  const std::uint64_t before = tally.stored;
  for (const Time end = clock.now() + 10s; tally.stored == before;) {
    if (clock.now() > end) return false;
    os::sleep_shortest();
  }
  return true;
}

/// The memory of all regions, one after the other.
class Memory {
 public:
  /// `flags`: of its mapping.
  explicit Memory(int flags)
      : all_(as_bytes(::mmap(nullptr, kRegions * kSize, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS, -1, 0),
                      kRegions * kSize)) {
    for (std::uint64_t key = 0; key < kRegions; ++key) reset(key);
  }
  ~Memory() { ::munmap(all_.data(), all_.size()); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  Bytes of(std::uint64_t key) const { return all_.subspan(key * kSize, kSize); }
  void reset(std::uint64_t key) { std::fill_n(of(key).data(), kSize, kOurs); }

 private:
  Bytes all_;
};

/// Opens all regions, lets the initiators write, and closes the regions in a random order; returns how many had been
/// written to. Each has its old bytes again when it is closed, so whatever is found later came too late.
std::uint64_t take_turn(RegionDirectory& directory, Memory& memory, test::FakeRandom& random,
                        const std::function<void()>& wait) {
  for (std::uint64_t key = 0; key < kRegions; ++key) {
    const auto base = reinterpret_cast<std::uintptr_t>(memory.of(key).data());
    directory.offer(key, {.base = base, .length = kSize, .writable = true});
  }
  wait();
  std::array<std::uint64_t, kRegions> order;
  std::iota(order.begin(), order.end(), 0);
  std::uint64_t hit = 0;
  for (std::uint64_t left = kRegions; left > 0; --left) {
    std::swap(order[left - 1], order[random.below(left)]);
    const std::uint64_t key = order[left - 1];
    EXPECT_TRUE(directory.withdraw(key)) << "region " << key;
    hit += untouched(memory.of(key)) ? 0 : 1;
    memory.reset(key);
    if (random.below(8) == 0) os::sleep_shortest();
  }
  return hit;
}

/// `flags`: of the memory's mapping.
void close_under_fire(int flags) {
  const std::byte ip[] = {std::byte{127}, std::byte{0}, std::byte{97}, std::byte{1}};
  const SocketAddress name = SocketAddress::v4(ip, static_cast<std::uint16_t>(::getpid() | 1));
  auto& tally = *static_cast<Tally*>(
      ::mmap(nullptr, sizeof(Tally), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  Memory memory(flags);
  bool mapped = flags == MAP_SHARED;
  pid_t initiators[kInitiators];
  for (int i = 0; i < kInitiators; ++i) {
    initiators[i] = ::fork();
    ASSERT_GE(initiators[i], 0);
    if (initiators[i] == 0) fire(name, i, tally);
  }
  os::SystemClock clock;
  test::FakeRandom random(static_cast<std::uint64_t>(::getpid()));
  test::FakeLog log;
  RegionDirectory directory(clock, random, log);
  const std::shared_ptr<void> served = directory.serve(name, false, false);
  std::uint64_t hit = 0;
  const std::uint64_t turns = (rounds() + kRegions - 1) / kRegions;
  for (std::uint64_t turn = 0; turn < turns && !::testing::Test::HasFailure(); ++turn) {
    hit += take_turn(directory, memory, random, [&] {
      if (mapped && turn % 4 == 0) mapped = wait_for_a_store(clock, tally);
      for (std::uint64_t wait = random.below(3); wait > 0; --wait) os::sleep_shortest();
    });
    if (random.below(2) == 0) os::sleep_shortest();
    for (std::uint64_t key = 0; key < kRegions; ++key) {
      EXPECT_TRUE(untouched(memory.of(key))) << "turn " << turn << ", region " << key;
    }
  }
  for (const pid_t initiator : initiators) {
    ::kill(initiator, SIGKILL);
    ::waitpid(initiator, nullptr, 0);
  }
  if (tally.written == 0) GTEST_SKIP() << "this kernel lets no process look into another";
  if (flags == MAP_SHARED && !mapped) GTEST_SKIP() << "not privileged to open what has no name";
  EXPECT_GT(hit, turns) << "regions that were written to while they were registered";
  EXPECT_GT(tally.denied.load(), 0u);
  EXPECT_EQ(tally.stored > 0, mapped);
  std::printf("%llu regions closed, %llu of them written to before\n",
              static_cast<unsigned long long>(turns * kRegions), static_cast<unsigned long long>(hit));
  ::munmap(&tally, sizeof tally);
}

TEST(RegionClose, NotOneByteComesAfterwards) { close_under_fire(MAP_PRIVATE); }

TEST(RegionClose, NotOneByteComesThroughMappingsAfterwards) { close_under_fire(MAP_SHARED); }

}  // namespace
}  // namespace cluster::shm
