// What it would cost to send raw frames without CAP_NET_RAW through a process that has it. Such a service takes frames out of a
// ring of shared memory, writes their Ethernet, IP and UDP headers itself, so that none leaves under an address that is not its
// user's, and sends them. Compared with the two links that there are, in four ways:
//
//   udp        the program sends and receives by a UDP socket; any user may
//   packet     the program sends and receives by packet sockets; needs the capability
//   send       the program sends through the service, and receives by a UDP socket
//   both       the service also receives for it, into a second ring
//
// between two network namespaces joined by a veth pair, frames of 64 bytes. Per way:
//
//   polling us   one way, median. One program at both ends on one processor, a polling service on another: none waits for a
//                processor, as where each of them had one for itself.
//   sleeping us  half a round trip, median. Two programs and their services, all of which sleep until something comes.
//   frames/s     as polling, in bursts of 32, at most 128 under way. With a service two processors work, otherwise one.
//
//   bench_packet_service [--rounds N]      default 100000; needs root, two processors, the ip tool and veth
#include <poll.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <vector>

#include "conformance/link_station.h"
#include "conformance/two_hosts.h"
#include "os/packet_link.h"
#include "os/udp_link.h"

namespace cluster {
namespace {

using Family = SocketAddress::Family;

constexpr std::size_t kFrameSize = 64;
constexpr std::size_t kBurst = 32;
constexpr std::size_t kUnderWay = 128;
constexpr int kSkipped = 77;
constexpr auto kLostAfter = std::chrono::milliseconds(100);

void fail(const char* what) {
  std::fprintf(stderr, "bench_packet_service: %s: %s\n", what, std::strerror(errno));
  std::exit(1);
}

void stay_on(std::size_t processor) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(processor, &set);
  ::sched_setaffinity(0, sizeof set, &set);
}

/// Until one of them is readable.
void sleep_on(const std::vector<int>& descriptors) {
  std::vector<pollfd> watched;
  for (const int each : descriptors) watched.push_back({each, POLLIN, 0});
  ::poll(watched.data(), watched.size(), 1000);
}

/// Frames from one process to another.
struct Ring {
  static constexpr std::uint32_t kSlots = 256;
  struct Slot {
    link::Path path;
    std::uint32_t size;
    std::byte bytes[2000];
  };

  alignas(64) std::atomic<std::uint32_t> written{0};
  alignas(64) std::atomic<std::uint32_t> read{0};
  std::atomic<bool> sleeps{false};  ///< the reader
  int bell = ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  Slot slots[kSlots];

  static Ring& make() {
    void* const shared = ::mmap(nullptr, sizeof(Ring), PROT_READ | PROT_WRITE,
                                MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (shared == MAP_FAILED) fail("mmap");
    return *new (shared) Ring;
  }
  std::size_t waiting() const {
    return written.load(std::memory_order_acquire) - read.load(std::memory_order_relaxed);
  }
  bool write(const link::Path& path, ConstBytes frame) {
    const std::uint32_t at = written.load(std::memory_order_relaxed);
    if (at - read.load(std::memory_order_acquire) == kSlots) return false;
    Slot& slot = slots[at % kSlots];
    slot.path = path;
    slot.size = static_cast<std::uint32_t>(frame.size());
    std::memcpy(slot.bytes, frame.data(), frame.size());
    written.store(at + 1, std::memory_order_release);
    return true;
  }
  const Slot& oldest(std::size_t behind) const {
    return slots[(read.load(std::memory_order_relaxed) + behind) % kSlots];
  }
  void take(std::size_t count) {
    read.fetch_add(static_cast<std::uint32_t>(count), std::memory_order_release);
  }

  void wake_reader() {
    std::atomic_thread_fence(std::memory_order_seq_cst);
    const std::uint64_t one = 1;
    if (sleeps.load(std::memory_order_relaxed) && ::write(bell, &one, sizeof one) < 0) fail("eventfd");
  }
  /// The reader is about to sleep, which it may if nothing waits.
  bool may_sleep() {
    sleeps.store(true, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_seq_cst);
    return waiting() == 0;
  }
  void awake() {
    std::uint64_t rung = 0;
    sleeps.store(false, std::memory_order_relaxed);
    if (::read(bell, &rung, sizeof rung) < 0 && errno != EAGAIN) fail("eventfd");
  }
};

/// One host: how its program sends and receives, and what its service does for that.
class Host {
 public:
  enum class Way : std::uint8_t { udp, packet, send, both };

  Host(const test::TwoHosts& hosts, int number, Way way)
      : hosts_(hosts), number_(number), interface_(hosts.interface(number)), way_(way) {
    hosts.on(number, [&] {
      int error = 0;
      station_.port = os::UdpPort::open(hosts.address(number, Family::v4), error);
      service_station_.port = os::UdpPort::open(hosts.address(number, Family::v4), error);
    });
    if (!station_.port || !service_station_.port) fail("no port");
    if (served()) outward_ = &Ring::make();
    if (way == Way::both) inward_ = &Ring::make();
  }
  bool served() const { return way_ == Way::send || way_ == Way::both; }
  SocketAddress name() const { return station_.name(); }
  void lead_to(const Host& other) { path_ = {other.name(), other.interface_.mac, true}; }

  // --- the program ---
  std::size_t send(std::size_t count) {
    const ConstBytes frame(frame_);
    if (outward_ != nullptr) {
      std::size_t taken = 0;
      while (taken < count && outward_->write(path_, frame)) ++taken;
      outward_->wake_reader();
      return taken;
    }
    std::array<link::OutFrame, kBurst> burst;
    for (std::size_t i = 0; i < count; ++i) {
      burst[i].path = &path_;
      burst[i].add(frame);
    }
    return link().send_burst(std::span(burst).first(count));
  }
  std::size_t receive() {
    if (inward_ == nullptr) return take_arrivals([](ConstBytes) {});
    const std::size_t count = inward_->waiting();
    for (std::size_t i = 0; i < count; ++i)
      seen_ = seen_ + std::to_integer<unsigned>(inward_->oldest(i).bytes[0]);
    if (count != 0) inward_->take(count);
    return count;
  }
  void sleep() {
    if (inward_ != nullptr) {
      if (inward_->may_sleep()) sleep_on({inward_->bell});
      return inward_->awake();
    }
    link().before_sleep();
    sleep_on(link().descriptors());
  }

  // --- the service ---
  std::size_t serve() {
    std::array<link::OutFrame, kBurst> burst;
    const std::size_t count = std::min(outward_->waiting(), kBurst);
    for (std::size_t i = 0; i < count; ++i) {
      const Ring::Slot& slot = outward_->oldest(i);
      // A run of frames with one path leaves as one super-frame.
      const bool same =
          i != 0 && burst[i - 1].path->to == slot.path.to && burst[i - 1].path->same_mac(slot.path);
      burst[i].path = same ? burst[i - 1].path : &slot.path;
      burst[i].add({slot.bytes, std::min<std::size_t>(slot.size, sizeof slot.bytes)});
    }
    if (count != 0) outward_->take(service_link().send_burst(std::span(burst).first(count)));
    if (inward_ == nullptr) return count;
    const std::size_t came = take_arrivals([this](ConstBytes frame) { inward_->write({}, frame); });
    if (came != 0) inward_->wake_reader();
    return count + came;
  }
  void sleep_serving() {
    std::vector<int> watched{outward_->bell};
    if (inward_ != nullptr) {
      service_link().before_sleep();
      for (const int each : service_link().descriptors()) watched.push_back(each);
    }
    if (outward_->may_sleep()) sleep_on(watched);
    outward_->awake();
  }

 private:
  /// Opened where it is first used: a child has not the ring of its parent's packet link.
  link::Link& opened(test::Station& station, bool packet) {
    if (station.link != nullptr) return *station.link;
    std::string reason;
    hosts_.on(number_, [&] {
      const Environment& world = station.world.environment;
      station.link =
          packet ? os::open_packet_link(station.port, interface_, {.ring_outside_group = true}, world, reason)
                 : os::open_udp_link(station.port, test::TwoHosts::kMtu, world);
    });
    if (station.link == nullptr) fail(reason.c_str());
    return *station.link;
  }
  /// Where it receives.
  link::Link& link() { return opened(station_, way_ == Way::packet || way_ == Way::both); }
  /// Where its service sends.
  link::Link& service_link() { return way_ == Way::both ? link() : opened(service_station_, true); }
  template <typename Visit>
  std::size_t take_arrivals(Visit&& visit) {
    std::size_t count = 0;
    const std::size_t arrivals = link().receive_burst(arrivals_);
    for (std::size_t i = 0; i < arrivals; ++i) {
      for (ConstBytes rest = arrivals_[i].bytes; rest.size() >= kFrameSize; rest = rest.subspan(kFrameSize)) {
        visit(rest.first(kFrameSize));
        ++count;
      }
    }
    return count;
  }

  const test::TwoHosts& hosts_;
  int number_;
  link::Interface interface_;
  Way way_;
  test::Station station_;
  test::Station service_station_;
  Ring* outward_ = nullptr;
  Ring* inward_ = nullptr;
  link::Path path_;
  std::array<std::byte, kFrameSize> frame_{std::byte{1}};
  std::array<link::InFrame, link::kBurstMax> arrivals_;
  volatile unsigned seen_ = 0;
};

using Pair = std::array<Host*, 2>;

/// A child that does the same again and again until its parent ends it, or is no more.
template <typename Work>
pid_t start(std::size_t processor, Work&& work) {
  const pid_t child = ::fork();
  if (child < 0) fail("fork");
  if (child != 0) return child;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  stay_on(processor);
  for (;;) work();
}

void stop(const std::vector<pid_t>& children) {
  for (const pid_t child : children) {
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
  }
}

double now_us() {
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

/// `round` says whether a frame came; where most of them are lost there is nothing to measure.
template <typename Round>
double median_us(std::size_t rounds, Round&& round) {
  std::vector<double> times;
  for (std::size_t i = 0; i < rounds + rounds / 10; ++i) {
    const double begin = now_us();
    if (round() && i >= rounds / 10) times.push_back(now_us() - begin);
  }
  errno = ENODATA;
  if (times.size() <= rounds / 2) fail("frames do not arrive");
  std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2), times.end());
  return times[times.size() / 2];
}

/// True if a frame came in time.
template <typename Wait>
bool await(Host& host, Wait&& wait) {
  const auto end = std::chrono::steady_clock::now() + kLostAfter;
  while (host.receive() == 0) {
    if (std::chrono::steady_clock::now() > end) return false;
    wait();
  }
  return true;
}

double polling_us(const Pair& pair, std::size_t rounds) {
  return median_us(rounds, [&] {
    pair[0]->send(1);
    return await(*pair[1], [] {});
  });
}

double frames_a_second(const Pair& pair, std::size_t frames) {
  std::size_t sent = 0;
  std::size_t received = 0;
  const double begin = now_us();
  double heard = begin;
  while (received < frames) {
    if (sent - received + kBurst <= kUnderWay) sent += pair[0]->send(kBurst);
    const std::size_t came = pair[1]->receive();
    received += came;
    if (came != 0) {
      heard = now_us();
    } else if (now_us() - heard > 1e5) {
      std::fprintf(stderr, "%zu frames were lost\n", sent - received);
      received = sent;
      heard = now_us();
    }
  }
  return static_cast<double>(received) / (now_us() - begin) * 1e6;
}

double sleeping_us(const Pair& pair, std::size_t rounds) {
  std::vector<pid_t> children;
  for (std::size_t i = 0; i < pair.size(); ++i) {
    if (!pair[i]->served()) continue;
    children.push_back(start(i, [host = pair[i]] {
      if (host->serve() == 0) host->sleep_serving();
    }));
  }
  children.push_back(start(1, [host = pair[1]] {
    for (std::size_t count = host->receive(); count != 0; --count) host->send(1);
    host->sleep();
  }));
  const double round_trip = median_us(rounds, [&] {
    pair[0]->send(1);
    return await(*pair[0], [&] { pair[0]->sleep(); });
  });
  stop(children);
  return round_trip / 2;
}

struct Joined {
  Joined(const test::TwoHosts& hosts, Host::Way way) : one(hosts, 0, way), other(hosts, 1, way) {
    one.lead_to(other);
    other.lead_to(one);
  }
  Host one;
  Host other;
  Pair pair{&one, &other};
};

void measure(const char* name, Host::Way way, std::size_t rounds) {
  std::string reason;
  const std::unique_ptr<test::TwoHosts> hosts = test::TwoHosts::make(reason);
  if (!hosts) {
    std::fprintf(stderr, "bench_packet_service: %s\n", reason.c_str());
    std::exit(kSkipped);
  }
  stay_on(0);
  Joined polled(*hosts, way);
  std::vector<pid_t> service;
  if (polled.one.served()) {
    service.push_back(start(1, [&polled] {
      for (Host* host : polled.pair) host->serve();
    }));
  }
  const double polling = polling_us(polled.pair, rounds);
  const double rate = frames_a_second(polled.pair, rounds * 10);
  stop(service);
  Joined slept(*hosts, way);
  std::printf("%-8s %12.2f %12.2f %12.0f\n", name, polling, sleeping_us(slept.pair, rounds / 4 + 1), rate);
  std::fflush(stdout);
}

int run(std::size_t rounds) {
  std::printf("%-8s %12s %12s %12s\n", "way", "polling us", "sleeping us", "frames/s");
  std::fflush(stdout);
  const std::pair<const char*, Host::Way> ways[] = {{"udp", Host::Way::udp},
                                                    {"packet", Host::Way::packet},
                                                    {"send", Host::Way::send},
                                                    {"both", Host::Way::both}};
  for (const auto& [name, way] : ways) measure(name, way, rounds);
  return 0;
}

constexpr const char* kHelp =
    "bench_packet_service [--rounds N]\n"
    "  What sending raw frames through a service costs a program without CAP_NET_RAW, beside the links udp "
    "and packet,\n"
    "  between two network namespaces. N: round trips per way, 100000 unless it is said. Needs root and two "
    "processors;\n"
    "  exit status 77 where there are no namespaces. The columns are explained at the head of "
    "bench/packet_service.cc.\n";

}  // namespace
}  // namespace cluster

int main(int count, char** words) {
  const bool rounds_follow = count == 3 && std::strcmp(words[1], "--rounds") == 0;
  const long rounds = rounds_follow ? std::strtol(words[2], nullptr, 10) : 100'000;
  if ((count != 1 && !rounds_follow) || rounds < 1) {
    std::fputs(cluster::kHelp, stdout);
    return count == 2 && std::strcmp(words[1], "--help") == 0 ? 0 : 2;
  }
  return cluster::run(static_cast<std::size_t>(rounds));
}
