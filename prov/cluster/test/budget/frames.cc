// One thread that sends tagged messages to and fro between two network namespaces, for the test that counts
// what a message alone in its frame costs beside the kernel's work, and for the table that says where the
// time of longer ones goes. After the messages it writes 8 bytes into the memory of the other side, first to
// and fro, and then in one direction. Each step stands in a function of its own, by which the counting tool
// knows it. With BYTES it also counts the calls that send, and the datagrams. The kernel has carried a frame
// over veth by the time the call that sent it returns.
//
// The tool makes the program so slow that no answer would come in time for an acknowledgement to ride on it.
// So the provider is shown a monotonic clock that goes slowly, and a little further with each look.
//
// budget_frames NAMESPACE NAMESPACE MESSAGES [BYTES]       (paths of network namespaces; BYTES: 64 to
// 1048576, default 64)
#include <dlfcn.h>
#include <fcntl.h>
#include <rdma/fi_rma.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
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

/// Of one message, in nanoseconds.
struct Times {
  long send = 0;  ///< fi_tsend with what is the kernel's
  long send_kernel = 0;
  long arrive = 0;
  long arrive_kernel = 0;
};
std::vector<Times> spent;
bool times = false;  ///< whether the calls of the kernel are timed
long in_kernel = 0;
struct Sent {
  long calls = 0;
  long datagrams = 0;  ///< each of them, with all its segments, is one arrival
} sent_so_far;

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

/// The provider sends and receives by this. The calls are counted, and are timed only for the table of times.
/// While they are not timed, this function adds some ten instructions to each call, which the counts contain.
BUDGET_SHOWN_TO_PROVIDER long budget_syscall(long, long, long, long, long, long) __asm__("syscall");

namespace {

using Syscall = long(long, ...);
Syscall* real_syscall = nullptr;  ///< null while calls are timed
std::atomic<unsigned long> calls{0};

[[gnu::noinline]] long timed_syscall(long number, long a, long b, long c, long d, long e) {
  static Syscall* const real = of_libc<Syscall>("syscall");
  const long began = now();
  const long result = real(number, a, b, c, d, e);
  in_kernel += now() - began;
  if (number == SYS_sendmmsg && result > 0) {
    ++sent_so_far.calls;
    sent_so_far.datagrams += result;
  }
  return result;
}

}  // namespace

long budget_syscall(long number, long a, long b, long c, long d, long e) {
  calls.store(calls.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  if (real_syscall == nullptr) [[unlikely]]
    return timed_syscall(number, a, b, c, d, e);
  return real_syscall(number, a, b, c, d, e);
}

namespace {

using namespace budget;

constexpr std::uint64_t kTag = 7, kKey = 1;
constexpr int kWarmUp =
    3000;  ///< past first contact, the choice of paths, and every table and pool at its size
constexpr std::size_t kBytesMin = 64, kBytesMax = 1024 * 1024;

std::size_t bytes = kBytesMin;

/// One end, in its own network namespace.
struct Node {
  explicit Node(const char* path) : space(::open(path, O_RDONLY | O_CLOEXEC)) {
    enter();
    fabric = new Fabric(FI_TAGGED | FI_RMA);
    side = fabric->open();
    check("fi_mr_reg",
          fi_mr_reg(fabric->domain, &written, sizeof written, FI_REMOTE_WRITE, 0, kKey, 0, &region, nullptr));
  }
  void enter() const { check("setns", ::setns(space, CLONE_NEWNET) == 0 ? 0 : -errno); }
  void leave() {
    enter();
    close(side);
    check("fi_close", fi_close(&region->fid));
    fabric->close();
    delete fabric;
    ::close(space);
  }

  int space;
  Fabric* fabric = nullptr;
  Side side;
  fid_mr* region = nullptr;
  std::uint64_t written = 0;  ///< where the other side writes
  std::uint64_t to_write = 0;
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

[[gnu::noinline]] void budget_frame_write(Node& node) {
  check("fi_write", fi_write(node.side.ep, &node.to_write, 8, nullptr, node.side.peer, 0, kKey, &node));
}

/// Returns how many writes of this side are complete. The target looks at its memory.
[[gnu::noinline]] ssize_t budget_frame_written(Node& node) {
  fi_cq_tagged_entry entries[2];
  return std::max<ssize_t>(fi_cq_read(node.side.queue, entries, 2), 0);
}

/// Another context keeps the two functions apart.
[[gnu::noinline]] void budget_frame_write_alone(Node& node) {
  check("fi_write", fi_write(node.side.ep, &node.to_write, 8, nullptr, node.side.peer, 0, kKey, nullptr));
}

[[gnu::noinline]] void budget_frame_take_write(Node& node) {
  fi_cq_tagged_entry entries[2];
  fi_cq_read(node.side.queue, entries, 2);
}

[[gnu::noinline]] bool budget_frame_complete(Node& node) {
  fi_cq_tagged_entry entries[2];
  return fi_cq_read(node.side.queue, entries, 2) == 1;
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
  if (times)
    spent.push_back(
        {sent - began, sent_in_kernel - began_in_kernel, now() - sent, in_kernel - sent_in_kernel});
  if (to.in[0] != from.out[0]) check("the data", -FI_EOTHER);
}

/// Writes, and returns how many earlier writes of the target its reads have found complete. The answer to a
/// write comes with the next write of the target.
ssize_t put(Node& from, Node& to) {
  ++from.to_write;
  budget_frame_write(from);
  ssize_t complete = 0;
  for (int tries = 0; std::atomic_ref(to.written).load() != from.to_write; ++tries) {
    if (tries == kReadsMax) check("a write", -FI_ETIMEDOUT);
    if (tries != 0) fi_cq_read(from.side.queue, nullptr, 0);
    complete += budget_frame_written(to);
  }
  return complete;
}

ssize_t puts(Node& one, Node& other, int writes) {
  ssize_t complete = 0;
  for (int i = 0; i < writes; i += 2) {
    complete += put(one, other);
    complete += put(other, one);
  }
  return complete;
}

/// Writes and waits for the answer, while the target writes nothing.
void put_alone(Node& from, Node& to) {
  ++from.to_write;
  budget_frame_write_alone(from);
  for (int tries = 0; std::atomic_ref(to.written).load() != from.to_write; ++tries) {
    if (tries == kReadsMax) check("a write", -FI_ETIMEDOUT);
    budget_frame_take_write(to);
  }
  for (int tries = 0; !budget_frame_complete(from); ++tries) {
    if (tries == kReadsMax) check("a completion", -FI_ETIMEDOUT);
    fi_cq_read(to.side.queue, nullptr, 0);
  }
}

/// Of all messages, in microseconds. A message during which another program had the processor hardly counts.
double median(long Times::*of) {
  std::vector<long> found(spent.size());
  std::transform(spent.begin(), spent.end(), found.begin(), [&](const Times& each) { return each.*of; });
  const auto middle = found.begin() + static_cast<long>(found.size() / 2);
  std::nth_element(found.begin(), middle, found.end());
  return static_cast<double>(*middle) / 1000;
}

}  // namespace

[[gnu::noinline]] ssize_t budget_frame_puts_answered(Node& one, Node& other, int writes) {
  return puts(one, other, writes);
}

[[gnu::noinline]] void budget_frame_puts_alone(Node& one, Node& other, int writes) {
  for (int i = 0; i < writes; ++i) put_alone(one, other);
}

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
  if (times) {
    bytes = static_cast<std::size_t>(std::atoi(argv[4]));
  } else {
    real_syscall = of_libc<Syscall>("syscall");
  }
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
  spent.clear();
  sent_so_far = {};
  budget_frame_exchanges(one, other, messages);
  const Sent sent = sent_so_far;
  const unsigned long calls_before = calls;
  budget_frame_looks(one, other, messages);
  const double calls_a_look = static_cast<double>(calls - calls_before) / messages;
  if (!times) {
    ssize_t left = kWarmUp + messages - puts(one, other, kWarmUp);
    left -= budget_frame_puts_answered(one, other, messages);
    for (int tries = 0; left > 0; ++tries) {
      if (tries == kReadsMax) check("a completion", -FI_ETIMEDOUT);
      for (Node* node : {&one, &other}) left -= budget_frame_written(*node);
    }
    for (int i = 0; i < kWarmUp; ++i) put_alone(one, other);
    budget_frame_puts_alone(one, other, messages);
  }
  const auto per_message = [&](long count) { return static_cast<double>(count) / messages; };
  std::printf("system calls a look: %.3f\n", calls_a_look);
  std::printf("calls that send: %.3f\ndatagrams: %.3f\n", per_message(sent.calls),
              per_message(sent.datagrams));
  std::printf("reads %llu\n", static_cast<unsigned long long>(reads));
  if (times)
    std::printf("microseconds: send %.2f kernel %.2f arrive %.2f kernel %.2f\n", median(&Times::send),
                median(&Times::send_kernel), median(&Times::arrive), median(&Times::arrive_kernel));
  other.leave();
  one.leave();
  return 0;
}
