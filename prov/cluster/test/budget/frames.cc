// One thread that sends tagged messages to and fro between two network namespaces, for the test that counts what a message
// alone in its frame costs beside the kernel's work, and for the table that says where the time of longer ones goes. Each step
// stands in a function of its own, by which the counting tool knows it. The kernel has carried a frame over veth by the time
// the call that sent it returns.
//
// The tool makes the program so slow that no answer would come in time for an acknowledgement to ride on it. So the
// provider is shown a monotonic clock that goes slowly, and a little further with each look.
//
//   budget_frames NAMESPACE NAMESPACE MESSAGES [BYTES]       (paths of network namespaces; BYTES: 64 to 1048576, default 64)
#include <dlfcn.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

#include "fabric.h"

namespace {

constexpr long kSecond = 1'000'000'000;

template <typename Function>
Function* of_libc(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

/// Of the real clock, in nanoseconds.
long now() {
  static auto* const read = of_libc<decltype(::clock_gettime)>("clock_gettime");
  timespec moment{};
  read(CLOCK_MONOTONIC, &moment);
  return moment.tv_sec * kSecond + moment.tv_nsec;
}

struct Times {
  long send = 0;  ///< fi_tsend with what is the kernel's
  long send_kernel = 0;
  long arrive = 0;
  long arrive_kernel = 0;
} spent;
bool times = false;  ///< whether the calls of the kernel are timed
long in_kernel = 0;

}  // namespace

#define BUDGET_SHOWN_TO_PROVIDER extern "C" [[gnu::visibility("default")]]

BUDGET_SHOWN_TO_PROVIDER int clock_gettime(clockid_t clock, timespec* moment) {
  constexpr long kSlower = 100, kLook = 50;
  static auto* const read = of_libc<decltype(::clock_gettime)>("clock_gettime");
  static long first = 0, looks = 0;
  if (clock != CLOCK_MONOTONIC) return read(clock, moment);
  const long real = now();
  if (first == 0) first = real;
  const long shown = first + (real - first) / kSlower + kLook * ++looks;
  *moment = {shown / kSecond, shown % kSecond};
  return 0;
}

/// The provider sends and receives by this. The calls are timed only for the table of times.
BUDGET_SHOWN_TO_PROVIDER long budget_syscall(long, long, long, long, long, long) __asm__("syscall");
long budget_syscall(long number, long a, long b, long c, long d, long e) {
  static auto* const real_syscall = of_libc<long(long, ...)>("syscall");
  if (!times) return real_syscall(number, a, b, c, d, e);
  const long began = now();
  const long result = real_syscall(number, a, b, c, d, e);
  in_kernel += now() - began;
  return result;
}

namespace {

using namespace budget;

constexpr std::uint64_t kTag = 7;
constexpr int kWarmUp =
    3000;  ///< past first contact, the choice of paths, and every table and pool at its size
constexpr std::size_t kBytesMin = 64, kBytesMax = 1024 * 1024;

std::size_t bytes = kBytesMin;

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
  std::vector<std::uint64_t> out = std::vector<std::uint64_t>(bytes / sizeof(std::uint64_t)), in = out;
};

}  // namespace

// The steps; external names, for the tool, and kept apart where they are alike.
[[gnu::noinline]] void budget_frame_expect(Node& node) {
  check("fi_trecv", fi_trecv(node.side.ep, node.in.data(), bytes, nullptr, node.side.peer, kTag, 0, &node));
}

[[gnu::noinline]] void budget_frame_send(Node& node) {
  check("fi_tsend", fi_tsend(node.side.ep, node.out.data(), bytes, nullptr, node.side.peer, kTag, &node));
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
  const long began = now(), began_in_kernel = in_kernel;
  budget_frame_send(from);
  const long sent = now(), sent_in_kernel = in_kernel;
  for (int tries = 0; !budget_frame_arrived(to); ++tries, ++reads) {
    if (tries == kReadsMax) check("a message", -FI_ETIMEDOUT);
    fi_cq_read(from.side.queue, nullptr, 0);
  }
  ++reads;
  spent.send += sent - began;
  spent.send_kernel += sent_in_kernel - began_in_kernel;
  spent.arrive += now() - sent;
  spent.arrive_kernel += in_kernel - sent_in_kernel;
  if (to.in[0] != from.out[0]) check("the data", -FI_EOTHER);
}

}  // namespace

[[gnu::noinline]] void budget_frame_exchanges(Node& one, Node& other, int messages) {
  for (int i = 0; i < messages; i += 2) {
    pass(one, other);
    pass(other, one);
  }
}

/// Reads that find nothing. The first ones settle what the messages have left.
[[gnu::noinline]] void budget_frame_looks(Node& one, Node& other, int looks) {
  fi_cq_tagged_entry entries[2];
  for (int i = 0; i < looks; ++i) {
    Node& node = i % 2 == 0 ? one : other;
    if (const ssize_t got = fi_cq_read(node.side.queue, entries, 2); got < 0 && got != -FI_EAGAIN)
      check("a read of nothing", got);
  }
}

int main(int argc, char** argv) {
  const int messages = argc == 4 || argc == 5 ? std::atoi(argv[3]) : 0;
  times = argc == 5;
  if (times) bytes = static_cast<std::size_t>(std::atoi(argv[4]));
  if (messages < 1 || bytes < kBytesMin || bytes > kBytesMax) {
    std::fprintf(stderr, "usage: budget_frames NAMESPACE NAMESPACE MESSAGES [BYTES]\n");
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
  spent = {};
  budget_frame_exchanges(one, other, messages);
  budget_frame_looks(one, other, messages);
  const auto each = [&](long nanoseconds) { return static_cast<double>(nanoseconds) / 1000 / messages; };
  std::printf("reads %llu\nmicroseconds: send %.2f kernel %.2f arrive %.2f kernel %.2f\n",
              static_cast<unsigned long long>(reads), each(spent.send), each(spent.send_kernel),
              each(spent.arrive), each(spent.arrive_kernel));
  other.leave();
  one.leave();
  return 0;
}
