// One thread that sends 64-byte tagged messages to and fro between two network namespaces, each in a frame of its own, for
// the test that counts what that costs beside the kernel's work. Each step stands in a function of its own, by which the
// counting tool knows it. The kernel has carried a frame over veth by the time the call that sent it returns.
//
// The tool makes the program so slow that no answer would come in time for an acknowledgement to ride on it. So the
// provider is shown a monotonic clock that goes slowly, and a little further with each look.
//
//   budget_frames NAMESPACE NAMESPACE MESSAGES       (paths of network namespaces)
#include <fcntl.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>

#include "fabric.h"

extern "C" [[gnu::visibility("default")]] int clock_gettime(clockid_t clock, timespec* moment) {
  constexpr long kSlower = 100, kLook = 50, kSecond = 1'000'000'000;
  static long first = 0, looks = 0;
  const long result = ::syscall(SYS_clock_gettime, clock, moment);
  if (clock != CLOCK_MONOTONIC || result != 0) return static_cast<int>(result);
  const long now = moment->tv_sec * kSecond + moment->tv_nsec;
  if (first == 0) first = now;
  const long shown = first + (now - first) / kSlower + kLook * ++looks;
  *moment = {shown / kSecond, shown % kSecond};
  return 0;
}

namespace {

using namespace budget;

constexpr std::uint64_t kTag = 7;
constexpr int kWarmUp = 3000;  ///< past first contact, the choice of paths, and every table and pool at its size
constexpr std::size_t kBytes = 64;

/// One end, in its own network namespace.
struct Node {
  explicit Node(const char* path) : space(::open(path, O_RDONLY | O_CLOEXEC)) {
    enter();
    fabric = new Fabric(FI_TAGGED);
    side = fabric->open();
  }
  void enter() const { check("setns", ::setns(space, CLONE_NEWNET) == 0 ? 0 : -errno); }
  void leave() {
    enter();
    close(side);
    fabric->close();
    delete fabric;
    ::close(space);
  }

  int space;
  Fabric* fabric = nullptr;
  Side side;
  std::uint64_t out[kBytes / sizeof(std::uint64_t)] = {}, in[kBytes / sizeof(std::uint64_t)] = {};
};

}  // namespace

// The steps; external names, for the tool, and kept apart where they are alike.
[[gnu::noinline]] void budget_frame_expect(Node& node) {
  check("fi_trecv", fi_trecv(node.side.ep, node.in, kBytes, nullptr, node.side.peer, kTag, 0, &node));
}

[[gnu::noinline]] void budget_frame_send(Node& node) {
  check("fi_tsend", fi_tsend(node.side.ep, node.out, kBytes, nullptr, node.side.peer, kTag, &node));
}

/// True once the message is there; the completion of this side's last message comes with it.
[[gnu::noinline]] bool budget_frame_arrived(Node& node) {
  fi_cq_tagged_entry entries[2];
  const ssize_t got = fi_cq_read(node.side.queue, entries, 2);
  for (ssize_t i = 0; i < got; ++i) {
    if ((entries[i].flags & FI_RECV) != 0) return true;
  }
  return false;
}

namespace {

std::uint64_t reads = 0;  ///< that found a message or looked for one

void pass(Node& from, Node& to) {
  budget_frame_expect(from);
  ++from.out[0];
  budget_frame_send(from);
  for (int tries = 0; !budget_frame_arrived(to); ++tries, ++reads) {
    if (tries == kReadsMax) check("a message", -FI_ETIMEDOUT);
    fi_cq_read(from.side.queue, nullptr, 0);
  }
  ++reads;
  if (to.in[0] != from.out[0]) check("the data", -FI_EOTHER);
}

}  // namespace

[[gnu::noinline]] void budget_frame_exchanges(Node& one, Node& other, int messages) {
  for (int i = 0; i < messages; i += 2) {
    pass(one, other);
    pass(other, one);
  }
}

int main(int argc, char** argv) {
  const int messages = argc == 4 ? std::atoi(argv[3]) : 0;
  if (messages < 1) {
    std::fprintf(stderr, "usage: budget_frames NAMESPACE NAMESPACE MESSAGES\n");
    return 2;
  }
  Node one(argv[1]), other(argv[2]);
  one.side.peer = one.fabric->address_of(other.side);
  other.side.peer = other.fabric->address_of(one.side);
  budget_frame_expect(other);
  for (int i = 0; i < kWarmUp; i += 2) {
    pass(one, other);
    pass(other, one);
  }
  reads = 0;
  budget_frame_exchanges(one, other, messages);
  std::printf("reads %llu\n", static_cast<unsigned long long>(reads));
  other.leave();
  one.leave();
  return 0;
}
