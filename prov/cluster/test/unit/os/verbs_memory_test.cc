// Kept registrations of memory that its threads unmap, map again, move, give back and copy by forks, while
// devices read and write it. Each byte is compared. The library that stands in for libibverbs remembers the
// pages of a registration. If other pages are at the addresses, it does what hardware does: it goes on with
// the pages that it knows.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "conformance/link_station.h"
#include "conformance/two_hosts.h"
#include "os/memory_watch.h"
#include "os/verbs_reader.h"

namespace cluster::os {
namespace {

using link::DeviceUse;

constexpr std::size_t kPage = 4096;
constexpr std::size_t kPages = 24;
constexpr int kThreads = 4;
constexpr int kRounds = 400;

/// Memory of one buffer, and what applications do to it.
class Area {
 public:
  Area() { map(); }
  ~Area() { munmap(memory_, kPages * kPage); }
  Area(const Area&) = delete;
  Area& operator=(const Area&) = delete;

  Bytes bytes() const { return {memory_, kPages * kPage}; }

  void change(unsigned how) {
    const std::size_t size = kPages * kPage;
    switch (kChanges[how % kChanges.size()]) {
      // The new memory is elsewhere if another thread was faster.
      case Change::map_again:
        munmap(memory_, size);
        map();
        break;
      case Change::replace: replace(memory_, size); break;
      case Change::replace_part: replace(memory_ + 5 * kPage, 2 * kPage); break;
      case Change::move: {
        void* const place = mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        void* const moved = mremap(memory_, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, place);
        if (moved == MAP_FAILED) {  // the kernel moves no memory that was replaced in part
          munmap(place, size);
          break;
        }
        // Either this memory is used on, or what comes to its former place.
        if (how % 2 == 0) {
          memory_ = static_cast<std::byte*>(moved);
        } else {
          map();
          munmap(moved, size);
        }
        break;
      }
      case Change::empty: ASSERT_EQ(madvise(memory_ + 3 * kPage, 9 * kPage, MADV_DONTNEED), 0); break;
      case Change::fork: {
        const pid_t child = fork();
        if (child == 0) {
          std::memset(memory_, 0x77, size);
          _exit(0);
        }
        waitpid(child, nullptr, 0);
        break;
      }
    }
  }

 private:
  enum class Change : std::uint8_t { map_again, replace, replace_part, move, empty, fork };
  /// Emptied memory is rare, because nothing new is kept for a while afterwards.
  static constexpr std::array kChanges{
      Change::map_again, Change::replace, Change::replace_part, Change::move, Change::fork,
      Change::map_again, Change::replace, Change::replace_part, Change::move, Change::fork,
      Change::map_again, Change::replace, Change::replace_part, Change::move, Change::fork,
      Change::map_again, Change::replace, Change::replace_part, Change::move, Change::empty};

  void map() {
    void* const made =
        mmap(memory_, kPages * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(made, MAP_FAILED);
    memory_ = static_cast<std::byte*>(made);
    madvise(memory_, kPages * kPage, MADV_NOHUGEPAGE);
  }
  static void replace(std::byte* at, std::size_t size) {
    ASSERT_NE(mmap(at, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
              MAP_FAILED);
    madvise(at, size, MADV_NOHUGEPAGE);
  }

  std::byte* memory_ = nullptr;
};

/// Two devices with a queue pair each, and the buffers of one thread.
struct Lane {
  void open() {
    std::string reason;
    for (Interface& each : list_interfaces()) {
      if (!each.loopback) continue;
      const SocketAddress address = test::loopback(SocketAddress::Family::v4);
      here = open_verbs_reader(FAKE_IBVERBS, each, address, 0, reason);
      there = open_verbs_reader(FAKE_IBVERBS, each, address, 0, reason);
      break;
    }
    ASSERT_TRUE(here != nullptr && there != nullptr) << reason;
    const auto one = here->create(), other = there->create();
    ASSERT_TRUE(one && other);
    ours = *one;
    theirs = *other;
    ASSERT_TRUE(there->connect(theirs, ours) && here->connect(ours, theirs));
  }
  /// Reads all bytes of `source` into `target`. Returns how many of them are wrong.
  std::size_t transfer(Area& source, Area& target, unsigned seed) {
    const Bytes from = source.bytes(), into = target.bytes();
    const auto right = [seed](std::size_t at) {
      return static_cast<std::byte>(seed * 13 + at * 31 + (at >> 8));
    };
    for (std::size_t i = 0; i < from.size(); ++i) from[i] = right(i);
    std::memset(into.data(), 0, into.size());
    const auto exposed = there->add_memory(theirs.number, from, DeviceUse::read_by_peer);
    const auto written = here->add_memory(ours.number, into, DeviceUse::written_here);
    if (!exposed || !written) return from.size();
    bool succeeded = here->read(
        ours.number, {into, written->local, reinterpret_cast<std::uintptr_t>(from.data()), exposed->remote});
    std::array<link::DeviceReadEnd, 1> end;
    succeeded = succeeded && test::eventually([&] { return here->poll(end) == 1; }) && end[0].succeeded;
    here->remove_memory(written->handle);
    there->remove_memory(exposed->handle);
    std::size_t wrong = succeeded ? 0 : 1;
    for (std::size_t i = 0; i < into.size(); ++i) wrong += into[i] != right(i);
    return wrong;
  }

  std::unique_ptr<link::ReadDevice> here, there;
  link::QueuePairEnd ours, theirs;
};

TEST(VerbsMemory, ChangesUnderTrafficInFourThreads) {
  std::string reason;
  if (MemoryWatch::of_process(reason) == nullptr) GTEST_SKIP() << reason;
  setenv("FAKE_VERBS_PINS", "1", 1);
  std::array<Lane, kThreads> lanes;
  for (Lane& lane : lanes) ASSERT_NO_FATAL_FAILURE(lane.open());
  std::atomic<std::size_t> wrong{0};
  std::vector<std::thread> threads;
  for (unsigned number = 0; number < kThreads; ++number) {
    threads.emplace_back([&, number] {
      std::minstd_rand random(number + 1);
      std::array<Area, 4> areas;
      for (unsigned round = 0; round < kRounds; ++round) {
        Area& source = areas[random() % 2];
        Area& target = areas[2 + random() % 2];
        if (random() % 4 == 0) source.change(static_cast<unsigned>(random()));
        if (random() % 4 == 0) target.change(static_cast<unsigned>(random()));
        const std::size_t bad = lanes[number].transfer(source, target, number * kRounds + round);
        if (bad != 0 && wrong.fetch_add(bad) == 0) ADD_FAILURE() << bad << " wrong bytes in round " << round;
      }
    });
  }
  for (std::thread& each : threads) each.join();
  unsetenv("FAKE_VERBS_PINS");
  EXPECT_EQ(wrong, 0u);
  for (const Lane& lane : lanes) {
    for (const auto& device : {lane.here.get(), lane.there.get()}) {
      const link::DeviceMemoryUse use = device->memory_use();
      EXPECT_GT(use.hits, 0u);
      EXPECT_GT(use.dropped, 0u);
      EXPECT_EQ(device->keeps_nothing_because(), "");
    }
  }
}

}  // namespace
}  // namespace cluster::os
