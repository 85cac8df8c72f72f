// Reads by reliable queue pairs, and what becomes of them when the library, the device or a queue pair fails,
// shown over a library that stands in for libibverbs (test/verbs/fake_ibverbs.cc).
#include "os/verbs_reader.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <stdlib.h>

#include <array>
#include <string>
#include <vector>

#include "conformance/link_station.h"
#include "conformance/two_hosts.h"

namespace cluster::os {
namespace {

using link::DeviceMemoryKeys;
using link::DeviceReadEnd;
using link::DeviceUse;
using link::QueuePairEnd;

/// An environment variable, as long as the object exists.
class Set {
 public:
  Set(const char* name, const std::string& value) : name_(name) { setenv(name, value.c_str(), 1); }
  ~Set() { unsetenv(name_); }
  Set(const Set&) = delete;
  Set& operator=(const Set&) = delete;

 private:
  const char* name_;
};

std::vector<std::byte> pattern(std::size_t size) {
  std::vector<std::byte> bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i * 37 + (i >> 8));
  return bytes;
}

class VerbsReader : public ::testing::Test {
 protected:
  std::unique_ptr<link::ReadDevice> open(std::string& reason) const {
    for (Interface& each : list_interfaces()) {
      if (each.loopback) return open_verbs_reader(FAKE_IBVERBS, each, address_, 96 + 8, reason);
    }
    return nullptr;
  }
  /// Opens both devices and connects a queue pair of each with the other.
  void connect() {
    std::string reason;
    here_ = open(reason);
    there_ = open(reason);
    ASSERT_TRUE(here_ != nullptr && there_ != nullptr) << reason;
    join();
  }
  void join() {
    const auto here = here_->create(), there = there_->create();
    ASSERT_TRUE(here && there);
    ours_ = *here;
    theirs_ = *there;
    ours_.sequence = 5;
    theirs_.sequence = 0xfffffe;
    ASSERT_TRUE(there_->connect(theirs_, ours_) && here_->connect(ours_, theirs_));
  }
  /// Begins to read `source` into `target`.
  bool begin(ConstBytes source, Bytes target) {
    const auto from = there_->add_memory(theirs_.number, source, DeviceUse::read_by_peer);
    const auto into = here_->add_memory(ours_.number, target, DeviceUse::written_here);
    if (!from || !into) return false;
    source_ = *from;
    return here_->read(
        ours_.number, {target, into->local, reinterpret_cast<std::uintptr_t>(source.data()), source_.remote});
  }
  /// Returns the ends of `count` reads, or of those that end within some seconds.
  std::vector<DeviceReadEnd> ends(std::size_t count = 1) {
    std::vector<DeviceReadEnd> all;
    test::eventually([&] {
      std::array<DeviceReadEnd, 4> some;
      const std::size_t got = here_->poll(some);
      all.insert(all.end(), some.begin(), some.begin() + static_cast<std::ptrdiff_t>(got));
      return all.size() >= count;
    });
    return all;
  }

  /// Polls for a while, during which no read may end.
  void expect_no_end() {
    for (int i = 0; i < 20; ++i) {
      std::array<DeviceReadEnd, 4> some;
      EXPECT_EQ(here_->poll(some), 0u);
      ::poll(nullptr, 0, 5);
    }
  }

  SocketAddress address_ = test::loopback(SocketAddress::Family::v4);
  std::unique_ptr<link::ReadDevice> here_, there_;
  QueuePairEnd ours_, theirs_;
  DeviceMemoryKeys source_;
  std::vector<std::byte> sent_ = pattern(300'000);
  std::vector<std::byte> got_ = std::vector<std::byte>(sent_.size());
};

TEST_F(VerbsReader, ReachesItsOwnSubnet) {
  std::string reason;
  here_ = open(reason);
  ASSERT_NE(here_, nullptr) << reason;
  QueuePairEnd peer = *here_->create();
  EXPECT_TRUE(here_->reaches(peer));
  peer.gid[15] = std::byte{99};
  EXPECT_TRUE(here_->reaches(peer));
  peer.gid[12] = std::byte{99};
  EXPECT_FALSE(here_->reaches(peer)) << "an address of another subnet";
  peer.gid = {};
  peer.gid[0] = std::byte{0xfd};
  EXPECT_FALSE(here_->reaches(peer)) << "an IPv6 address";
}

TEST_F(VerbsReader, ADeviceWhoseGidHasMovedMustBeOpenedAgain) {
  connect();
  EXPECT_TRUE(here_->exists());
  const Set moved("FAKE_VERBS_GID", "7");
  EXPECT_FALSE(here_->exists());
  connect();
  EXPECT_TRUE(here_->exists());
}

TEST_F(VerbsReader, ADeviceWhosePortIsDownMustBeOpenedAgain) {
  connect();
  EXPECT_TRUE(here_->works());
  {
    const Set down("FAKE_VERBS_PORT", "down");
    EXPECT_FALSE(here_->works());
    EXPECT_FALSE(there_->exists());
    std::string reason;
    EXPECT_EQ(open(reason), nullptr);
    EXPECT_NE(reason.find("is down"), std::string::npos) << reason;
  }
  connect();
  EXPECT_TRUE(here_->exists());
}

TEST_F(VerbsReader, SaysWhyItRefusesMemory) {
  connect();
  EXPECT_EQ(here_->refused_memory_because(), "");
  const Set fails("FAKE_VERBS_FAIL", "ibv_reg_mr");
  const Set full("FAKE_VERBS_ERRNO", std::to_string(ENOMEM));
  EXPECT_FALSE(here_->add_memory(ours_.number, got_, DeviceUse::written_here));
  EXPECT_NE(here_->refused_memory_because().find("ulimit -l"), std::string::npos);
}

TEST_F(VerbsReader, ReadsWhatThePeerExposes) {
  connect();
  EXPECT_EQ(ours_.mtu, 3);
  EXPECT_EQ(ours_.reads, 16);
  ASSERT_TRUE(begin(sent_, got_));
  const auto over = ends();
  ASSERT_EQ(over.size(), 1u);
  EXPECT_TRUE(over[0].succeeded);
  EXPECT_EQ(over[0].queue_pair, ours_.number);
  EXPECT_TRUE(got_ == sent_);
  EXPECT_TRUE(here_->exists());
}

TEST_F(VerbsReader, ManyReadsEndInOrder) {
  connect();
  const auto from = there_->add_memory(theirs_.number, sent_, DeviceUse::read_by_peer);
  const auto into = here_->add_memory(ours_.number, got_, DeviceUse::written_here);
  ASSERT_TRUE(from && into);
  const std::size_t part = sent_.size() / link::ReadDevice::kReadsMax;
  for (std::size_t i = 0; i < link::ReadDevice::kReadsMax; ++i) {
    ASSERT_TRUE(
        here_->read(ours_.number, {Bytes(got_).subspan(i * part, part), into->local,
                                   reinterpret_cast<std::uintptr_t>(sent_.data()) + i * part, from->remote}));
  }
  EXPECT_EQ(ends(link::ReadDevice::kReadsMax).size(), link::ReadDevice::kReadsMax);
  EXPECT_TRUE(std::equal(got_.begin(), got_.begin() + static_cast<std::ptrdiff_t>(16 * part), sent_.begin()));
}

TEST_F(VerbsReader, WithdrawnMemoryCannotBeRead) {
  connect();
  const auto from = there_->add_memory(theirs_.number, sent_, DeviceUse::read_by_peer);
  ASSERT_TRUE(from);
  there_->remove_memory(from->handle);
  const auto into = here_->add_memory(ours_.number, got_, DeviceUse::written_here);
  ASSERT_TRUE(into &&
              here_->read(ours_.number,
                          {got_, into->local, reinterpret_cast<std::uintptr_t>(sent_.data()), from->remote}));
  const auto over = ends();
  ASSERT_EQ(over.size(), 1u);
  EXPECT_FALSE(over[0].succeeded);
  EXPECT_TRUE(got_ == std::vector<std::byte>(sent_.size()));
}

TEST_F(VerbsReader, WhatIsForOnePeerIsForNoOther) {
  connect();
  const auto for_another = there_->create();
  ASSERT_TRUE(for_another);
  const auto from = there_->add_memory(for_another->number, sent_, DeviceUse::read_by_peer);
  const auto into = here_->add_memory(ours_.number, got_, DeviceUse::written_here);
  ASSERT_TRUE(from && into);
  ASSERT_TRUE(here_->read(ours_.number,
                          {got_, into->local, reinterpret_cast<std::uintptr_t>(sent_.data()), from->remote}));
  const auto over = ends();
  ASSERT_EQ(over.size(), 1u);
  EXPECT_FALSE(over[0].succeeded);
}

TEST_F(VerbsReader, AFailureEndsAllLaterReadsOfTheQueuePair) {
  for (const char* const fault : {"read_error@2", "read_half@2"}) {
    const Set set("FAKE_VERBS_FAULT", fault);
    connect();
    for (int i = 0; i < 3; ++i) ASSERT_TRUE(begin(sent_, got_));
    const auto over = ends(3);
    ASSERT_EQ(over.size(), 3u) << fault;
    EXPECT_TRUE(over[0].succeeded && !over[1].succeeded && !over[2].succeeded) << fault;
    here_->destroy(ours_.number);
    join();
    ASSERT_TRUE(begin(sent_, got_)) << "another queue pair works";
    const auto next = ends();
    EXPECT_TRUE(next.size() == 1 && next[0].succeeded) << fault;
  }
}

TEST_F(VerbsReader, SoftDevicesAreNotExact) {
  connect();
  EXPECT_TRUE(here_->exact());
  const Set soft("FAKE_VERBS_SOFT", "1");
  connect();
  EXPECT_FALSE(here_->exact());
}

TEST_F(VerbsReader, NothingIsWrittenAfterTheEnd) {
  connect();
  for (int i = 0; i < 8; ++i) ASSERT_TRUE(begin(sent_, got_));
  here_->destroy(ours_.number);
  std::fill(got_.begin(), got_.end(), std::byte{0});
  expect_no_end();
  EXPECT_TRUE(got_ == std::vector<std::byte>(sent_.size()));
}

TEST_F(VerbsReader, ASilentReadCanBeEnded) {
  const Set set("FAKE_VERBS_FAULT", "read_silence@1");
  connect();
  ASSERT_TRUE(begin(sent_, got_));
  expect_no_end();
  here_->destroy(ours_.number);
  here_ = nullptr;
}

TEST_F(VerbsReader, NoticesThatTheDeviceIsGone) {
  const Set set("FAKE_VERBS_FAULT", "read_remove@2");
  connect();
  ASSERT_TRUE(begin(sent_, got_));
  EXPECT_EQ(ends().size(), 1u);
  EXPECT_TRUE(here_->works() && here_->exists());
  pollfd waits{here_->descriptor(), POLLIN, 0};
  EXPECT_EQ(::poll(&waits, 1, 0), 0);
  begin(sent_, got_);
  EXPECT_EQ(::poll(&waits, 1, 1000), 1) << "a sleeper does not learn of it";
  EXPECT_FALSE(here_->works());
  EXPECT_FALSE(here_->exists());
}

TEST_F(VerbsReader, ASleeperMissesNoEnd) {
  connect();
  pollfd waits{here_->descriptor(), POLLIN, 0};
  for (int round = 0; round < 3; ++round) {
    ASSERT_TRUE(here_->arm());
    EXPECT_TRUE(::poll(&waits, 1, 0) == 0);
    ASSERT_TRUE(begin(sent_, got_));
    EXPECT_EQ(::poll(&waits, 1, 5000), 1) << "a sleeper is not woken";
    EXPECT_EQ(ends().size(), 1u);
    EXPECT_EQ(::poll(&waits, 1, 0), 0) << "a sleeper would not sleep again";
  }
}

TEST_F(VerbsReader, SaysWhichCallHasFailed) {
  for (const char* const call : {"ibv_query_device", "ibv_create_comp_channel", "ibv_create_cq"}) {
    const Set fails("FAKE_VERBS_FAIL", call);
    std::string reason;
    EXPECT_EQ(open(reason), nullptr);
    EXPECT_NE(reason.find(call), std::string::npos) << reason;
  }
  std::string reason;
  here_ = open(reason);
  ASSERT_NE(here_, nullptr) << reason;
  for (const char* const call : {"ibv_alloc_pd", "ibv_create_qp", "ibv_modify_qp"}) {
    const Set fails("FAKE_VERBS_FAIL", call);
    EXPECT_FALSE(here_->create()) << call;
  }
  const auto made = here_->create();
  ASSERT_TRUE(made);
  const Set fails("FAKE_VERBS_FAIL", "ibv_modify_qp,ibv_reg_mr");
  EXPECT_FALSE(here_->connect(*made, *made));
  EXPECT_FALSE(here_->add_memory(made->number, sent_, DeviceUse::read_by_peer));
}

}  // namespace
}  // namespace cluster::os
