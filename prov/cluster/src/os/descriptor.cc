#include "os/descriptor.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <system_error>
#include <vector>

#include "base/process_generation.h"

namespace cluster::os {
namespace {

constexpr std::size_t kWordBits = 64;
/// Large enough for every descriptor number that fs.nr_open allows by default. Unused pages of `owned_bits`
/// take no memory.
constexpr std::size_t kDescriptorsMax = 1 << 20;

std::atomic<std::uint64_t> owned_bits[kDescriptorsMax / kWordBits];

std::uint64_t bit_of(std::size_t number) { return std::uint64_t{1} << number % kWordBits; }

}  // namespace

void OwnedDescriptors::add(int number) {
  const auto place = static_cast<std::size_t>(number);
  if (number >= 0 && place < kDescriptorsMax)
    owned_bits[place / kWordBits].fetch_or(bit_of(place), std::memory_order_relaxed);
}

void OwnedDescriptors::remove(int number) {
  const auto place = static_cast<std::size_t>(number);
  if (place < kDescriptorsMax)
    owned_bits[place / kWordBits].fetch_and(~bit_of(place), std::memory_order_relaxed);
}

void OwnedDescriptors::close_all() {
  for (std::size_t word = 0; word < kDescriptorsMax / kWordBits; ++word) {
    std::uint64_t bits = owned_bits[word].exchange(0, std::memory_order_relaxed);
    for (; bits != 0; bits &= bits - 1) {
      ::close(static_cast<int>(word * kWordBits) + __builtin_ctzll(bits));
    }
  }
}

Descriptor Descriptor::spare() { return Descriptor(::open("/dev/null", O_RDONLY | O_CLOEXEC)); }

bool can_open(std::size_t descriptors) {
  std::vector<Descriptor> spares;
  while (spares.size() < descriptors) {
    spares.push_back(Descriptor::spare());
    if (!spares.back()) return false;
  }
  return true;
}

std::string error_text(int error) {
  return std::generic_category().message(error) +
         (error == EMFILE   ? ": raise the hard limit of open files (\"ulimit -Hn\")"
          : error == ENFILE ? ": raise the limit of open files of the node (sysctl fs.file-max)"
                            : "");
}

std::string failed(const char* call) { return std::string(call) + ": " + error_text(errno); }

void raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  const rlim_t wanted = std::min<rlim_t>(limit.rlim_max, kDescriptorsMax);
  if (limit.rlim_cur >= wanted) return;
  limit.rlim_cur = wanted;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

/// The kernel never makes the table smaller, so the highest number can be free again.
void reserve_descriptor_table() {
  rlimit limit{};
  const Descriptor any = Descriptor::spare();
  if (!any || ::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  const auto last = static_cast<int>(std::min<rlim_t>(limit.rlim_cur, kDescriptorsReserved)) - 1;
  const Descriptor highest(::fcntl(any.number(), F_DUPFD_CLOEXEC, last));
}

void install_fork_guard(const ForkHandlers& wanted) {
  static ForkHandlers handlers{};
  if (handlers.prepare != nullptr) return;
  handlers = wanted;
  pthread_atfork(handlers.prepare, handlers.in_parent, [] {
    process_generation.fetch_add(1, std::memory_order_relaxed);
    OwnedDescriptors::close_all();
    handlers.in_child();
  });
}

/// A forked child opens a reserve of its own, because the fork guard (os/descriptor.h) has closed the child's
/// copies of the parent's descriptors.
std::shared_ptr<SpareDescriptors> SpareDescriptors::of_process() {
  static std::mutex& mutex = *new std::mutex;
  static std::weak_ptr<SpareDescriptors>& known = *new std::weak_ptr<SpareDescriptors>;
  static unsigned generation = 0;
  const std::lock_guard guard(mutex);
  const unsigned now = process_generation.load(std::memory_order_relaxed);
  std::shared_ptr<SpareDescriptors> spares = generation == now ? known.lock() : nullptr;
  if (spares == nullptr) spares.reset(new SpareDescriptors);
  known = spares;
  generation = now;
  return spares;
}

void SpareDescriptors::reserve() {
  for (Descriptor& spare : spares_) {
    if (!spare) spare = Descriptor::spare();
  }
}

}  // namespace cluster::os
