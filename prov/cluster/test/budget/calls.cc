// One thread that sends 8-byte tagged messages, and then writes 8 bytes, into private memory and into a shared
// mapping, from one endpoint of this process to another, as two processes of one node would, for the test that
// counts what that costs. Each step stands in a function
// of its own, by which the counting tool knows it. Deterministic: no other process takes part.
//
//   budget_calls EXCHANGES
#include <rdma/fi_rma.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>

#include "fabric.h"

namespace {

using namespace budget;

constexpr std::uint64_t kTag = 7;
constexpr std::uint64_t kKey = 1, kSharedKey = 2;
constexpr int kWarmUp = 3000;  ///< past first contact, and every table and pool at its size
constexpr int kRun = 50;       ///< exchanges counted between two looks that are not

}  // namespace

// The steps; external names, for the tool.
[[gnu::noinline]] void budget_receive(Side& receiver) {
  check("fi_trecv", fi_trecv(receiver.ep, &receiver.data, 8, nullptr, receiver.peer, kTag, 0, &receiver));
}

[[gnu::noinline]] void budget_send(Side& sender) {
  check("fi_tsend", fi_tsend(sender.ep, &sender.data, 8, nullptr, sender.peer, kTag, &sender));
}

[[gnu::noinline]] bool budget_read_sent(Side& sender) {
  fi_cq_tagged_entry entry;
  return fi_cq_read(sender.queue, &entry, 1) == 1;
}

[[gnu::noinline]] bool budget_read_received(Side& receiver) {
  fi_cq_tagged_entry entry;
  return fi_cq_read(receiver.queue, &entry, 1) == 1;
}

[[gnu::noinline]] void budget_write(Side& initiator) {
  check("fi_write", fi_write(initiator.ep, &initiator.data, 8, nullptr, initiator.peer, 0, kKey, &initiator));
}

[[gnu::noinline]] void budget_take_write(Side& target) { fi_cq_read(target.queue, nullptr, 0); }

[[gnu::noinline]] bool budget_read_written(Side& initiator) {
  fi_cq_tagged_entry entry;
  return fi_cq_read(initiator.queue, &entry, 1) == 1;
}

[[gnu::noinline]] void budget_store(Side& initiator) {
  check("fi_write",
        fi_write(initiator.ep, &initiator.data, 8, nullptr, initiator.peer, 0, kSharedKey, &initiator));
}

[[gnu::noinline]] void budget_load(Side& initiator) {
  check("fi_read",
        fi_read(initiator.ep, &initiator.data, 8, nullptr, initiator.peer, 0, kSharedKey, &initiator));
}

[[gnu::noinline]] bool budget_read_accessed(Side& initiator) {
  fi_cq_tagged_entry entry;
  return fi_cq_read(initiator.queue, &entry, 1) == 1;
}

[[gnu::noinline]] void budget_read_nothing(Side& receiver) {
  fi_cq_tagged_entry entry;
  if (fi_cq_read(receiver.queue, &entry, 1) != -FI_EAGAIN) check("an idle queue", -FI_EOTHER);
}

namespace {

template <typename Read>
void await(Side& side, Side& other, Read&& read) {
  for (int reads = 0; !read(side); ++reads) {
    if (reads == kReadsMax) check("a completion", -FI_ETIMEDOUT);
    fi_cq_read(other.queue, nullptr, 0);
  }
}

void exchange(Side& sender, Side& receiver) {
  ++sender.data;
  budget_receive(receiver);
  budget_send(sender);
  await(sender, receiver, budget_read_sent);
  await(receiver, sender, budget_read_received);
  budget_read_nothing(receiver);
  if (receiver.data != sender.data) check("the data", -FI_EOTHER);
}

/// The target's last look, which finds nothing, shows the initiator how far it has come. One look more is
/// needed where the progress thread holds the engine just then.
void put(Side& initiator, Side& target) {
  ++initiator.data;
  budget_write(initiator);
  await(target, initiator, [&](Side&) {
    budget_take_write(target);
    return target.data == initiator.data;
  });
  fi_cq_read(target.queue, nullptr, 0);
  await(initiator, target, budget_read_written);
}

/// The target takes no part.
void store_and_load(Side& initiator, Side& target, const volatile std::uint64_t& shared) {
  const std::uint64_t written = ++initiator.data;
  budget_store(initiator);
  await(initiator, target, budget_read_accessed);
  if (shared != written) check("the data", -FI_EOTHER);
  initiator.data = 0;
  budget_load(initiator);
  await(initiator, target, budget_read_accessed);
  if (initiator.data != written) check("the data that was read", -FI_EOTHER);
}

}  // namespace

[[gnu::noinline]] void budget_accesses(Side& initiator, Side& target, const std::uint64_t& shared,
                                       int count) {
  for (int i = 0; i < count; ++i) store_and_load(initiator, target, shared);
}

[[gnu::noinline]] void budget_puts(Side& initiator, Side& target, int count) {
  for (int i = 0; i < count; ++i) put(initiator, target);
}

[[gnu::noinline]] void budget_exchanges(Side& sender, Side& receiver, int count) {
  for (int i = 0; i < count; ++i) exchange(sender, receiver);
}

namespace {

/// Some work comes once in 256 looks, and each exchange takes two. An uncounted look between runs makes this
/// work fall on both looks equally often, wherever the warm-up ended.
template <typename Run>
void in_runs(int count, Side& one, Side& other, Run&& run) {
  for (int done = 0; done < count; done += kRun) {
    run(std::min(kRun, count - done));
    for (Side* const side : {&one, &other}) fi_cq_read(side->queue, nullptr, 0);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const int exchanges = argc == 2 ? std::atoi(argv[1]) : 0;
  if (exchanges < 1) {
    std::fprintf(stderr, "usage: budget_calls EXCHANGES\n");
    return 2;
  }
  Fabric fabric(FI_TAGGED | FI_RMA);
  Side sender = fabric.open(), receiver = fabric.open();
  sender.peer = fabric.address_of(receiver);
  receiver.peer = fabric.address_of(sender);
  for (int i = 0; i < kWarmUp; ++i) exchange(sender, receiver);
  in_runs(exchanges, sender, receiver, [&](int count) { budget_exchanges(sender, receiver, count); });
  fid_mr* region = nullptr;
  check("fi_mr_reg", fi_mr_reg(fabric.domain, &receiver.data, sizeof receiver.data, FI_REMOTE_WRITE, 0, kKey,
                               0, &region, nullptr));
  check("fi_write", fi_write(sender.ep, &sender.data, 8, nullptr, sender.peer, 0, kKey, &sender));
  await(sender, receiver, budget_read_written);  // the way to the region is found
  for (int i = 0; i < kWarmUp; ++i) put(sender, receiver);
  in_runs(exchanges, sender, receiver, [&](int count) { budget_puts(sender, receiver, count); });
  check("fi_close", fi_close(&region->fid));
  const int file = ::memfd_create("budget_calls", MFD_CLOEXEC);
  check("ftruncate", ::ftruncate(file, 4096));
  void* const page = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  check("mmap", page == MAP_FAILED ? -FI_ENOMEM : 0);
  auto& shared = *static_cast<std::uint64_t*>(page);
  check("fi_mr_reg", fi_mr_reg(fabric.domain, &shared, sizeof shared, FI_REMOTE_WRITE | FI_REMOTE_READ, 0,
                               kSharedKey, 0, &region, nullptr));
  for (int i = 0; i < kWarmUp; ++i) store_and_load(sender, receiver, shared);
  in_runs(exchanges, sender, receiver, [&](int count) { budget_accesses(sender, receiver, shared, count); });
  check("fi_close", fi_close(&region->fid));
  close(sender);
  close(receiver);
  fabric.close();
  return 0;
}
