// What a shared-memory ring gives between two processes on two cores: one-way latency, message rate,
// bandwidth. Prints one line per measure, the best and the median of several runs, and before each the
// one-way time of a bare cache line: on virtual machines the distance of two cores changes, and only
// runs with like distances compare.
//
//   bench_shm_ring [payload capacity in KiB, default 1024 [latency|rate|bandwidth|message]]
#include <sched.h>
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
#include <vector>

#include "shm/local_listener.h"

namespace cluster::shm {
namespace {

constexpr int kRuns = 25;
constexpr std::size_t kMessageMax = 16u << 20;

class Surroundings : public Clock, public Random, public Log {
 public:
  Time now() override { return {}; }
  std::uint64_t next() override { return 4; }
  bool enabled(LogLevel) const override { return true; }
  void write(LogLevel, const char* line) override { std::fprintf(stderr, "%s\n", line); }
  Environment environment() { return {*this, *this, *this, counters_}; }

 private:
  Counters counters_;
};

double seconds_of(auto&& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/// One end of a pair: messages cut into segments, copied in and copied out.
class End {
 public:
  End(const SocketAddress& name, const SocketAddress& peer, std::size_t ring_bytes) {
    std::string reason;
    host_ = open_listener(name, 1, ShmSettings{ring_bytes}, surroundings_.environment(), reason);
    if (!host_) fail(reason);
    while (!outbox_) {
      outbox_ = host_->connect(peer).outbox;
      ::sched_yield();
    }
    std::vector<std::unique_ptr<Inbox>> inboxes;
    while (inboxes.empty()) {
      host_->accept(inboxes);
      ::sched_yield();
    }
    inbox_ = std::move(inboxes[0]);
    for (auto* buffer : {&out_, &in_}) {
      buffer->resize(kMessageMax + 4096, std::byte{1});
    }
  }

  void send(std::size_t size) {
    const ConstBytes slice{aligned(out_), size};
    std::size_t sent = 0;
    do {
      wire::Segment segment;
      segment.flags = wire::segment_flag::kTagged;
      const std::size_t part = std::min(size - sent, outbox_->payload_max(segment));
      segment.length = static_cast<std::uint32_t>(part);
      while (!outbox_->post(segment, Gather{{&slice, 1}, sent, part}, carrier::PayloadMode::copy, 0)) {
      }
      sent += part;
    } while (sent < size);
  }
  void receive(std::size_t size) {
    std::size_t received = 0;
    do {
      while (!inbox_->peek(arrival_)) {
      }
      if (!arrival_.payload.empty()) {
        std::memcpy(aligned(in_) + received, arrival_.payload.data(), arrival_.payload.size());
      }
      received += arrival_.payload.size();
      inbox_->pop();
    } while (received < size);
  }

 private:
  [[noreturn]] static void fail(const std::string& reason) {
    std::fprintf(stderr, "bench_shm_ring: %s\n", reason.c_str());
    std::exit(1);
  }
  static std::byte* aligned(std::vector<std::byte>& buffer) {
    return buffer.data() + (4096 - reinterpret_cast<std::uintptr_t>(buffer.data()) % 4096) % 4096;
  }

  Surroundings surroundings_;
  std::unique_ptr<LocalListener> host_;
  std::unique_ptr<Outbox> outbox_;
  std::unique_ptr<Inbox> inbox_;
  std::vector<std::byte> out_, in_;
  PeekedSegment arrival_;
};

struct Measure {
  const char* name;
  std::size_t size;
  int count;
  bool stream;  ///< one answer at the end of all, instead of one per message
};

// Short runs, many of them: some then fall between the turns of whatever else the machine does.
constexpr Measure kMeasures[] = {
    {"latency", 8, 5000, false},         {"latency", 64, 5000, false},
    {"latency", 1024, 2000, false},      {"latency", 4096, 1000, false},
    {"rate", 8, 50'000, true},           {"rate", 64, 20'000, true},
    {"bandwidth", 64u << 10, 100, true}, {"bandwidth", 1u << 20, 20, true},
    {"bandwidth", 16u << 20, 2, true},   {"message", 16u << 10, 200, false},
    {"message", 64u << 10, 100, false},  {"message", 1u << 20, 20, false},
    {"message", 16u << 20, 2, false},
};

void lead(End& end, const Measure& measure) {
  for (int i = 0; i < measure.count; ++i) {
    end.send(measure.size);
    if (!measure.stream) end.receive(measure.name[0] == 'l' ? measure.size : 0);
  }
  if (measure.stream) end.receive(0);
}

void follow(End& end, const Measure& measure) {
  for (int i = 0; i < measure.count; ++i) {
    end.receive(measure.size);
    if (!measure.stream) end.send(measure.name[0] == 'l' ? measure.size : 0);
  }
  if (measure.stream) end.send(0);
}

double cache_line_ns(std::atomic<unsigned>& line, bool first) {
  constexpr unsigned kTrips = 1000;
  const double seconds = seconds_of([&] {
    for (unsigned i = 0; i < kTrips; ++i) {
      while ((line.load(std::memory_order_acquire) & 1u) != (first ? 0u : 1u)) {
      }
      line.fetch_add(1, std::memory_order_release);
    }
  });
  return seconds * 1e9 / (2 * kTrips);
}

void print(const Measure& measure, std::vector<double> seconds, double line_ns) {
  std::sort(seconds.begin(), seconds.end());
  const auto value = [&](double time) {
    const double each = time / measure.count;
    if (measure.name[0] == 'l') return each / 2 * 1e9;
    if (measure.name[0] == 'r') return 1e-6 / each;
    return static_cast<double>(measure.size) / each * 1e-9;
  };
  const char* unit = measure.name[0] == 'l' ? "ns one-way" : measure.name[0] == 'r' ? "M/s" : "GB/s";
  std::printf("%-10s %9zu B   best %8.2f   median %8.2f   %-10s   (cache line %.0f ns)\n", measure.name,
              measure.size, value(seconds.front()), value(seconds[seconds.size() / 2]), unit, line_ns);
  std::fflush(stdout);
}

void pin(int core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(core, &set);
  ::sched_setaffinity(0, sizeof set, &set);
}

void run(std::size_t ring_bytes, const std::string& only) {
  const std::byte ip[] = {std::byte{127}, std::byte{0}, std::byte{99}, std::byte{3}};
  const auto port = static_cast<std::uint16_t>(::getpid() % 30'000 * 2 + 1);
  const SocketAddress one = SocketAddress::v4(ip, port),
                      two = one.with_port(static_cast<std::uint16_t>(port + 1));
  void* shared = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  auto& line = *static_cast<std::atomic<unsigned>*>(shared);
  const pid_t child = ::fork();
  const bool leads = child != 0;
  if (!leads) ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  pin(leads ? 0 : 1);
  End end(leads ? one : two, leads ? two : one, ring_bytes);
  for (const Measure& measure : kMeasures) {
    if (!only.empty() && only != measure.name) continue;
    std::vector<double> seconds;
    double line_ns = 0;
    for (int i = 0; i < kRuns; ++i) {
      line_ns = cache_line_ns(line, leads);
      if (leads) {
        seconds.push_back(seconds_of([&] { lead(end, measure); }));
      } else {
        follow(end, measure);
      }
    }
    if (leads) print(measure, seconds, line_ns);
  }
  if (!leads) ::_exit(0);
  ::waitpid(child, nullptr, 0);
}

}  // namespace
}  // namespace cluster::shm

int main(int argc, char** argv) {
  const std::size_t kibibytes = argc > 1 ? static_cast<std::size_t>(std::atol(argv[1])) : 1024;
  cluster::shm::run(kibibytes * 1024, argc > 2 ? argv[2] : "");
  return 0;
}
