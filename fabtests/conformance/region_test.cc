// Memory regions: keys and addresses in the model of today and in those that libfabric has left behind, the
// raw form of keys, what may be bound, and what becomes of accesses to a region that is closed. fi_mr(3)
#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>

#include <algorithm>
#include <atomic>

#include "fabric.h"

namespace conformance {
namespace {

constexpr std::uint64_t kRegionKey = 0xF000000000000041;
constexpr std::uint64_t kRemote = FI_REMOTE_READ | FI_REMOTE_WRITE;

Options region_options() {
  Options options;
  options.caps = FI_MSG | FI_RMA | FI_ATOMIC | FI_DIRECTED_RECV;
  return options;
}

Owned<fid_mr> reg(fid_domain* domain, void* start, std::size_t size, std::uint64_t access,
                  std::uint64_t key) {
  fid_mr* opened = nullptr;
  EXPECT_EQ(fi_mr_reg(domain, start, size, access, 0, key, 0, &opened, &opened), 0);
  if (opened != nullptr) {
    EXPECT_EQ(opened->fid.context, &opened);
  }
  return Owned<fid_mr>(opened);
}

SINGLE_TEST(Region, ComesFromEachCallOfTheFamily) {
  Domain domain(region_options());
  char memory[32];
  const iovec vector[2] = {{memory, 16}, {memory + 16, 16}};
  fid_mr* opened = nullptr;
  ASSERT_EQ(fi_mr_regv(domain.domain(), vector, 1, FI_REMOTE_READ, 0, kRegionKey, 0, &opened, nullptr), 0);
  EXPECT_EQ(fi_mr_key(opened), kRegionKey);
  EXPECT_EQ(fi_close(&opened->fid), 0);
  fi_mr_attr attributes{};
  attributes.mr_iov = vector;
  attributes.iov_count = 1;
  attributes.access = kRemote;
  attributes.requested_key = kRegionKey;
  attributes.context = memory;
  ASSERT_EQ(fi_mr_regattr(domain.domain(), &attributes, 0, &opened), 0);
  EXPECT_EQ(opened->fid.context, memory);
  EXPECT_EQ(fi_mr_key(opened), kRegionKey);
  EXPECT_EQ(fi_close(&opened->fid), 0);
  ASSERT_LT(domain.info()->domain_attr->mr_iov_limit, 2u);
  EXPECT_EQ(fi_mr_regv(domain.domain(), vector, 2, FI_REMOTE_READ, 0, kRegionKey, 0, &opened, nullptr),
            -FI_EINVAL);
  EXPECT_EQ(fi_mr_reg(domain.domain(), memory, 1, 1ull << 60, 0, kRegionKey, 0, &opened, nullptr),
            -FI_EINVAL);
}

SINGLE_TEST(Region, MayBeBoundEnabledAndRefreshedThoughNoneIsNeeded) {
  Endpoint e(region_options());
  char memory[16];
  const auto region = reg(e.domain().domain(), memory, sizeof memory, kRemote, kRegionKey);
  EXPECT_EQ(fi_mr_bind(region.get(), &e.ep()->fid, 0), 0);
  EXPECT_EQ(fi_mr_enable(region.get()), 0);
  const iovec vector{memory, sizeof memory};
  EXPECT_EQ(fi_mr_refresh(region.get(), &vector, 1, 0), 0);
  EXPECT_EQ(fi_mr_bind(region.get(), &e.rx()->fid, 0), -FI_EINVAL);
  const auto nothing = reg(e.domain().domain(), nullptr, 0, 0, kRegionKey);
}

/// Whatever the application permits: without FI_MR_PROV_KEY in the answer its own keys work, without FI_MR_VIRT_ADDR offsets do.
SINGLE_TEST(Region, KeysAndAddressesAreAsTheAnswerSays) {
  constexpr int kPermitted[] = {FI_MR_PROV_KEY, FI_MR_VIRT_ADDR, FI_MR_ALLOCATED,
                                FI_MR_LOCAL | FI_MR_ENDPOINT | FI_MR_RAW};
  for (unsigned chosen = 0; chosen < 1u << std::size(kPermitted); ++chosen) {
    Options options = region_options();
    for (std::size_t i = 0; i < std::size(kPermitted); ++i)
      options.mr_mode |= (chosen >> i & 1) != 0 ? kPermitted[i] : 0;
    Endpoint e(options);
    const int mode = e.domain().info()->domain_attr->mr_mode;
    ASSERT_EQ(mode & ~options.mr_mode, 0);
    const fi_addr_t self = e.insert(e.name());
    for (const std::uint64_t wanted : {1u, 2u}) {
      char memory[16] = {};
      const auto region = reg(e.domain().domain(), memory, sizeof memory, kRemote, wanted);
      const std::uint64_t key = (mode & FI_MR_PROV_KEY) != 0 ? fi_mr_key(region.get()) : wanted;
      const std::uint64_t start =
          (mode & FI_MR_VIRT_ADDR) != 0 ? reinterpret_cast<std::uintptr_t>(memory) : 0;
      char word[8] = "written";
      e.must([&] { return fi_write(e.ep(), word, sizeof word, nullptr, self, start + 4, key, &e); });
      e.finish(&e);
      EXPECT_STREQ(memory + 4, "written") << options.mr_mode;
    }
  }
}

PAIR_TEST(Region, ReachesAllMemoryAtOnce) {
  Team team(side, region_options());
  Endpoint& e = team.endpoint;
  std::vector<unsigned char> bytes(100000);
  const auto everything = reg(e.domain().domain(), nullptr, SIZE_MAX, kRemote, kRegionKey);
  Blob mine(sizeof(std::uintptr_t));
  const auto here = reinterpret_cast<std::uintptr_t>(bytes.data());
  std::memcpy(mine.data(), &here, sizeof here);
  const auto all = side.exchange(mine, [&] { e.progress(); });
  if (side.first()) {
    std::uintptr_t there = 0;
    std::memcpy(&there, all[1].data(), sizeof there);
    const auto data = pattern(bytes.size(), 3);
    e.must([&] {
      return fi_write(e.ep(), data.data(), data.size(), nullptr, team.peer(), there, kRegionKey, &e);
    });
    e.finish(&e);
    e.must([&] {
      return fi_read(e.ep(), bytes.data(), bytes.size(), nullptr, team.peer(), there, kRegionKey, &e);
    });
    e.finish(&e);
  }
  team.meet();
  EXPECT_TRUE(has_pattern(bytes, 3));
}

/// The owner of the region has one endpoint of the first process in its address vector, and none of the third. (Those of one
/// node and one user could reach its memory in any case.)
SIDES_TEST(Region, IsForAllEndpointsOfAProcessOfWhichItsOwnerKnowsOne, 3) {
  constexpr int kOwner = 1;
  Endpoint e(region_options());
  const auto progress = [&] { e.progress(); };
  const auto names = side.exchange(e.name(), progress);
  std::uint64_t memory[3] = {};
  const auto region = reg(e.domain().domain(), memory, sizeof memory, kRemote, kRegionKey);
  const bool members_only = !memory_in_reach() && provider_under_test() == "cluster";
  const bool refused = members_only && side.index() == 2;
  if (side.index() == kOwner) {
    e.insert(names[0]);
    side.meet(progress);
  } else {
    const fi_addr_t owner = e.insert(names[kOwner]);
    side.meet(progress);
    Endpoint further(e.domain());
    std::uint64_t word = 0x1111;
    const std::uint64_t place = sizeof word * static_cast<std::uint64_t>(side.index());
    further.must([&] {
      return fi_write(further.ep(), &word, sizeof word, nullptr, owner, place, kRegionKey, &further);
    });
    refused ? further.fail(&further, FI_EACCES) : further.finish(&further);
    further.must(
        [&] { return fi_read(further.ep(), &word, sizeof word, nullptr, owner, 8, kRegionKey, &further); });
    refused ? further.fail(&further, FI_EACCES) : further.finish(&further);
    EXPECT_EQ(word, refused ? 0x1111u : 0u);
  }
  side.meet(progress);
  if (side.index() != kOwner) return;
  EXPECT_EQ(memory[0], 0x1111u);
  EXPECT_EQ(memory[2], members_only ? 0u : 0x1111u);
}

/// As contexts of OpenSHMEM: each process has one endpoint in the other's address vector and calls the library for the others
/// alone, which all begin at once. That a process is asked about them, and answers, is the business of its progress thread.
PAIR_TEST(Region, IsForEndpointsOfProcessesThatDoNotCallForTheOneThatIsKnown) {
  constexpr std::size_t kContexts = 16;
  Options options = region_options();
  options.caps |= FI_ATOMIC;
  options.progress = FI_PROGRESS_AUTO;
  Endpoint known(options);
  std::uint64_t count = 0;
  const auto region = reg(known.domain().domain(), &count, sizeof count, kRemote, kRegionKey);
  const auto names = side.exchange(known.name());
  const fi_addr_t peer = known.insert(names[static_cast<std::size_t>(1 - side.index())]);
  side.meet();
  std::deque<Endpoint> contexts;
  for (std::size_t i = 0; i < kContexts; ++i) contexts.emplace_back(known.domain());
  const std::uint64_t one = 1;
  for (Endpoint& each : contexts) {
    each.must([&] {
      return fi_atomic(each.ep(), &one, 1, nullptr, peer, 0, kRegionKey, FI_UINT64, FI_SUM, &each);
    });
  }
  for (Endpoint& each : contexts) each.finish(&each);
  side.meet();
  EXPECT_EQ(std::atomic_ref(count).load(), kContexts);
}

PAIR_TEST(Region, ThatIsClosedIsNotTouchedAnyMore) {
  Team team(side, region_options());
  Endpoint& e = team.endpoint;
  std::vector<unsigned char> bytes(300000, 0);
  auto other = reg(e.domain().domain(), bytes.data(), bytes.size(), kRemote, kRegionKey + 1);
  auto region = reg(e.domain().domain(), bytes.data(), bytes.size(), kRemote, kRegionKey);
  team.meet();
  if (!side.first()) region.reset();
  team.meet();
  if (side.first()) {
    const std::vector<unsigned char> data(bytes.size(), 9);
    for (const std::size_t size : {std::size_t{8}, std::size_t{5000}, bytes.size()}) {
      e.must([&] { return fi_write(e.ep(), data.data(), size, nullptr, team.peer(), 0, kRegionKey, &e); });
      e.fail(&e, FI_EACCES);
      e.must([&] { return fi_read(e.ep(), bytes.data(), size, nullptr, team.peer(), 0, kRegionKey, &e); });
      e.fail(&e, FI_EACCES);
    }
    e.must([&] { return fi_write(e.ep(), data.data(), 1, nullptr, team.peer(), 8, kRegionKey + 1, &e); });
    e.finish(&e);  // the endpoints have not suffered
  }
  team.meet();
  if (!side.first()) {
    other.reset();  // the memory is this thread's alone again, whichever thread wrote to it
    EXPECT_EQ(bytes[0], 0);
    EXPECT_EQ(bytes[8], 9);
  }
  team.meet();
}

/// Transfers of one side meet with the end of the region at the other, which then uses the memory for something else: an
/// access that goes on behind fi_close leaves bytes of its own there.
void close_in_the_midst_of_transfers(Side& side, std::size_t size, int rounds) {
  Team team(side, region_options());
  Endpoint& e = team.endpoint;
  constexpr int kTransfers = 12;
  std::vector<unsigned char> bytes(size, 0);
  const std::vector<unsigned char> data(size, 5);
  for (int round = 0; round < rounds; ++round) {
    auto region = reg(e.domain().domain(), bytes.data(), bytes.size(), kRemote, kRegionKey);
    team.meet();
    if (side.first()) {
      int contexts[kTransfers];
      for (int i = 0; i < kTransfers; ++i) {
        e.must([&] {
          return i % 2 == 0
                     ? fi_write(e.ep(), data.data(), size, nullptr, team.peer(), 0, kRegionKey, &contexts[i])
                     : fi_read(e.ep(), bytes.data(), size, nullptr, team.peer(), 0, kRegionKey, &contexts[i]);
        });
        if (i == 0) e.progress();
      }
      for (int& context : contexts) {
        const auto outcome = e.await(&context);
        ASSERT_TRUE(outcome.has_value()) << "no completion in time";
        if (outcome->error) {
          EXPECT_EQ(outcome->failure.err, FI_EACCES);
        }
      }
    } else {
      for (int turn = 0; turn < round % 10 * 50; ++turn) e.progress();
      region.reset();
      std::fill(bytes.begin(), bytes.end(), 7);
    }
    team.meet();
    if (!side.first()) {
      ASSERT_EQ(std::count(bytes.begin(), bytes.end(), 7), static_cast<std::ptrdiff_t>(size));
    }
  }
}

PAIR_TEST(Region, ClosedInTheMidstOfTransfersLeavesEveryOneWithAnEnd) {
  close_in_the_midst_of_transfers(side, 2 << 20, 10);
}

/// With less memory, the owner has written all of it before an access that goes on behind fi_close has ended.
PAIR_TEST(Region, ClosedInTheMidstOfATransferIsNotTouchedAnyMore) {
  close_in_the_midst_of_transfers(side, 128 << 10, 200);
}

/// The models of before 1.5, and what they say of keys and addresses.
struct OldSide {
  explicit OldSide(int mode) {
    Options options = region_options();
    const Info hints = make_hints(options);
    hints->domain_attr->mr_mode = mode;
    hints->mode = FI_LOCAL_MR;
    fi_info* list = nullptr;
    EXPECT_EQ(fi_getinfo(FI_VERSION(1, 4), nullptr, nullptr, 0, hints.get(), &list), 0);
    info.reset(list);
  }
  Info info;
};

SINGLE_TEST(Region, OldModelsAreReportedToOldCallers) {
  EXPECT_EQ(OldSide(FI_MR_BASIC).info->domain_attr->mr_mode, FI_MR_BASIC);
  EXPECT_EQ(OldSide(FI_MR_SCALABLE).info->domain_attr->mr_mode, FI_MR_SCALABLE);
  const int unspecified = OldSide(FI_MR_UNSPEC).info->domain_attr->mr_mode;
  EXPECT_TRUE(unspecified == FI_MR_BASIC || unspecified == FI_MR_SCALABLE);
}

SINGLE_TEST(Region, OfTheBasicModelHasTheProvidersKeyAndItsOwnAddress) {
  const OldSide old(FI_MR_BASIC);
  fid_fabric* raw_fabric = nullptr;
  ASSERT_EQ(fi_fabric(old.info->fabric_attr, &raw_fabric, nullptr), 0);
  const Owned<fid_fabric> fabric(raw_fabric);
  fid_domain* raw_domain = nullptr;
  ASSERT_EQ(fi_domain(raw_fabric, old.info.get(), &raw_domain, nullptr), 0);
  const Owned<fid_domain> domain(raw_domain);
  fi_av_attr av_attr{};
  fid_av* raw_av = nullptr;
  ASSERT_EQ(fi_av_open(raw_domain, &av_attr, &raw_av, nullptr), 0);
  const Owned<fid_av> av(raw_av);
  fi_cq_attr cq_attr{};
  cq_attr.format = FI_CQ_FORMAT_CONTEXT;
  fid_cq* raw_cq = nullptr;
  ASSERT_EQ(fi_cq_open(raw_domain, &cq_attr, &raw_cq, nullptr), 0);
  const Owned<fid_cq> cq(raw_cq);
  fid_ep* raw_ep = nullptr;
  ASSERT_EQ(fi_endpoint(raw_domain, old.info.get(), &raw_ep, nullptr), 0);
  const Owned<fid_ep> ep(raw_ep);
  ASSERT_EQ(fi_ep_bind(raw_ep, &raw_av->fid, 0), 0);
  ASSERT_EQ(fi_ep_bind(raw_ep, &raw_cq->fid, FI_TRANSMIT | FI_RECV), 0);
  ASSERT_EQ(fi_enable(raw_ep), 0);
  char name[64];
  std::size_t size = sizeof name;
  ASSERT_EQ(fi_getname(&raw_ep->fid, name, &size), 0);
  fi_addr_t self = FI_ADDR_NOTAVAIL;
  ASSERT_EQ(fi_av_insert(raw_av, name, 1, &self, 0, nullptr), 1);

  char memory[64] = {};
  const auto first = reg(raw_domain, memory, 32, kRemote, kRegionKey);
  const auto second = reg(raw_domain, memory + 32, 32, kRemote, kRegionKey);
  EXPECT_NE(fi_mr_key(first.get()), fi_mr_key(second.get()));
  const auto act = [&](std::uint64_t address) -> ssize_t {
    char word[8] = "written";
    EXPECT_EQ(fi_write(raw_ep, word, sizeof word, nullptr, self, address, fi_mr_key(second.get()), word), 0);
    fi_cq_entry entry{};
    ssize_t got = -FI_EAGAIN;
    for (const Deadline deadline(std::chrono::seconds(20)); got == -FI_EAGAIN && !deadline.passed();) {
      got = fi_cq_read(raw_cq, &entry, 1);
    }
    return got;
  };
  EXPECT_EQ(act(reinterpret_cast<std::uintptr_t>(memory + 40)), 1);
  EXPECT_STREQ(memory + 40, "written");
  EXPECT_EQ(act(8), -FI_EAVAIL) << "an offset is no address here";
  union {
    fi_cq_err_entry entry;
    char bytes[128];
  } failure{};
  EXPECT_EQ(fi_cq_readerr(raw_cq, &failure.entry, 0), 1);
  EXPECT_EQ(failure.entry.err, FI_EACCES);
}

}  // namespace
}  // namespace conformance
