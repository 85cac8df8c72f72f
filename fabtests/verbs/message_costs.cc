// One thread that sends messages between two RDMA devices of this node, for the tool that counts instructions
// (message_costs.py). Both ends belong to the thread, so a count contains both sides: all calls of libfabric
// for a message, from the receive that is posted to both completions.
//
// The thread sleeps before each read of a completion queue, so that the kernel and the devices have done their
// part, and few reads find nothing. The counting tool makes the program so slow that the provider's periodic
// work (it looks for its device, and whether peers are alive) would hide what a message costs. So the program
// shows it a monotonic clock that goes slowly.
//
// message_costs PROVIDER ADDRESS ADDRESS MESSAGES
#include <dlfcn.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace {

constexpr std::size_t kShort = 8, kLong = std::size_t{1} << 20;
constexpr std::uint64_t kTag = 7, kKey = 1;
constexpr int kWarmUp = 40;
constexpr int kReadsMax = 20'000;
constexpr unsigned kSleep = 1000;  // microseconds

void check(const char* what, long result) {
  if (result >= 0) return;
  std::fprintf(stderr, "%s: %s\n", what, fi_strerror(static_cast<int>(-result)));
  std::exit(1);
}

/// Of the real clock, in nanoseconds.
long now() {
  using Read = int(clockid_t, timespec*);
  static auto* const read = reinterpret_cast<Read*>(::dlsym(RTLD_NEXT, "clock_gettime"));
  timespec moment{};
  read(CLOCK_MONOTONIC, &moment);
  return moment.tv_sec * 1'000'000'000 + moment.tv_nsec;
}

}  // namespace

/// What the provider calls. Both providers get this clock.
extern "C" [[gnu::visibility("default")]] int clock_gettime(clockid_t clock, timespec* moment) {
  constexpr long kSlower = 100, kSecond = 1'000'000'000;
  using Read = int(clockid_t, timespec*);
  static auto* const read = reinterpret_cast<Read*>(::dlsym(RTLD_NEXT, "clock_gettime"));
  static const long first = now();
  if (clock != CLOCK_MONOTONIC) return read(clock, moment);
  const long shown = first + (now() - first) / kSlower;
  *moment = {shown / kSecond, shown % kSecond};
  return 0;
}

namespace {

struct Side {
  Side(const char* provider, const char* address) {
    fi_info* const hints = fi_allocinfo();
    hints->caps = FI_TAGGED | FI_RMA;
    hints->ep_attr->type = FI_EP_RDM;
    hints->domain_attr->threading = FI_THREAD_DOMAIN;
    hints->domain_attr->mr_mode = FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
    hints->fabric_attr->prov_name = strdup(provider);
    check("fi_getinfo", fi_getinfo(FI_VERSION(1, 15), address, nullptr, FI_SOURCE, hints, &info));
    fi_freeinfo(hints);
    check("fi_fabric", fi_fabric(info->fabric_attr, &fabric, nullptr));
    check("fi_domain", fi_domain(fabric, info, &domain, nullptr));
    fi_av_attr of_table{};
    check("fi_av_open", fi_av_open(domain, &of_table, &av, nullptr));
    fi_cq_attr of_queue{};
    of_queue.format = FI_CQ_FORMAT_TAGGED;
    check("fi_cq_open", fi_cq_open(domain, &of_queue, &queue, nullptr));
    check("fi_endpoint", fi_endpoint(domain, info, &ep, nullptr));
    check("fi_ep_bind", fi_ep_bind(ep, &av->fid, 0));
    check("fi_ep_bind", fi_ep_bind(ep, &queue->fid, FI_TRANSMIT | FI_RECV));
    check("fi_enable", fi_enable(ep));
    check("fi_mr_reg", fi_mr_reg(domain, in.data(), in.size(), FI_REMOTE_WRITE | FI_REMOTE_READ, 0, kKey, 0,
                                 &region, nullptr));
  }

  void meet(Side& other) {
    std::array<char, 256> name;
    std::size_t size = name.size();
    check("fi_getname", fi_getname(&other.ep->fid, name.data(), &size));
    check("fi_av_insert", fi_av_insert(av, name.data(), 1, &peer, 0, nullptr) - 1);
    target = (other.info->domain_attr->mr_mode & FI_MR_VIRT_ADDR) != 0
                 ? reinterpret_cast<std::uint64_t>(other.in.data())
                 : 0;
    key = fi_mr_key(other.region);
  }

  fi_info* info = nullptr;
  fid_fabric* fabric = nullptr;
  fid_domain* domain = nullptr;
  fid_av* av = nullptr;
  fid_cq* queue = nullptr;
  fid_ep* ep = nullptr;
  fid_mr* region = nullptr;
  fi_addr_t peer = FI_ADDR_UNSPEC;
  std::uint64_t target = 0, key = 0;
  std::vector<std::byte> out = std::vector<std::byte>(kLong), in = out;
};

unsigned long reads = 0, found_nothing = 0;

}  // namespace

// What the tool counts, by these names. It counts everything that they call.
[[gnu::noinline]] void counted_expect(Side& side, std::size_t size) {
  check("fi_trecv", fi_trecv(side.ep, side.in.data(), size, nullptr, side.peer, kTag, 0, nullptr));
}

[[gnu::noinline]] ssize_t counted_send(Side& side, std::size_t size) {
  return fi_tsend(side.ep, side.out.data(), size, nullptr, side.peer, kTag, nullptr);
}

[[gnu::noinline]] ssize_t counted_write(Side& side, std::size_t size) {
  return fi_write(side.ep, side.out.data(), size, nullptr, side.peer, side.target, side.key, nullptr);
}

[[gnu::noinline]] ssize_t counted_read(Side& side) {
  std::array<fi_cq_tagged_entry, 4> entries;
  return fi_cq_read(side.queue, entries.data(), entries.size());
}

namespace {

/// Reads both queues until both together have so many completions.
void complete(Side& one, Side& other, int completions) {
  for (int tries = 0; completions > 0; ++tries) {
    if (tries == kReadsMax) check("a completion", -FI_ETIMEDOUT);
    usleep(kSleep << std::min(tries / 2, 7));
    const ssize_t got = counted_read(tries % 2 == 0 ? other : one);
    ++reads;
    found_nothing += got <= 0 ? 1 : 0;
    if (got < 0 && got != -FI_EAGAIN) check("fi_cq_read", got);
    completions -= got > 0 ? static_cast<int>(got) : 0;
  }
}

template <typename Post>
void post(Side& one, Side& other, Post&& begin) {
  for (int tries = 0;; ++tries) {
    const ssize_t result = begin();
    if (result != -FI_EAGAIN || tries == kReadsMax) return check("a call", result);
    usleep(kSleep);
    counted_read(one);
    counted_read(other);
  }
}

void message(Side& one, Side& other, std::size_t size) {
  counted_expect(other, size);
  post(one, other, [&] { return counted_send(one, size); });
  complete(one, other, 2);
}

void put(Side& one, Side& other, std::size_t size) {
  post(one, other, [&] { return counted_write(one, size); });
  complete(one, other, 1);
}

}  // namespace

// The parts, one for each row of the table.
[[gnu::noinline]] void part_tagged_short(Side& one, Side& other, int count) {
  for (int i = 0; i < count; ++i) i % 2 == 0 ? message(one, other, kShort) : message(other, one, kShort);
}
[[gnu::noinline]] void part_put_short(Side& one, Side& other, int count) {
  for (int i = 0; i < count; ++i) i % 2 == 0 ? put(one, other, kShort) : put(other, one, kShort);
}
[[gnu::noinline]] void part_tagged_long(Side& one, Side& other, int count) {
  for (int i = 0; i < count; ++i) i % 2 == 0 ? message(one, other, kLong) : message(other, one, kLong);
}

int main(int argc, char** argv) {
  const int count = argc == 5 ? std::atoi(argv[4]) : 0;
  if (count < 1) {
    std::fprintf(stderr, "usage: message_costs PROVIDER ADDRESS ADDRESS MESSAGES\n");
    return 2;
  }
  Side one(argv[1], argv[2]), other(argv[1], argv[3]);
  one.meet(other);
  other.meet(one);
  const struct {
    const char* name;
    void (*run)(Side&, Side&, int);
  } parts[] = {
      {"tagged_short", part_tagged_short}, {"put_short", part_put_short}, {"tagged_long", part_tagged_long}};
  for (const auto& part : parts) {
    for (int i = 0; i < kWarmUp; ++i) {
      part.run == part_put_short ? put(one, other, kShort)
                                 : message(one, other, part.run == part_tagged_long ? kLong : kShort);
      usleep(part.run == part_tagged_long ? 20 * kSleep : kSleep);
    }
    reads = found_nothing = 0;
    part.run(one, other, count);
    std::printf("%s reads %.2f of which %.2f found nothing\n", part.name, static_cast<double>(reads) / count,
                static_cast<double>(found_nothing) / count);
    std::fflush(stdout);
  }
  _exit(0);  // closing is not counted
}
