// What becomes of a verbs link when libibverbs, the device, the port or the queue pair fails, shown over a
// library that stands in for libibverbs (test/verbs/fake_ibverbs.cc). What any link does,
// test/conformance/link_test.cc shows.
#include "os/verbs_link.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <stdlib.h>

#include <cerrno>

#include "conformance/link_station.h"
#include "conformance/two_hosts.h"

namespace cluster::os {
namespace {

using test::numbered;
using test::Numbered;
using test::Station;

/// An environment variable, as long as the object exists.
class Variable {
 public:
  Variable(const char* name, const std::string& value) : name_(name) { setenv(name, value.c_str(), 1); }
  ~Variable() { unsetenv(name_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
};

Interface loopback_interface() {
  for (Interface& each : list_interfaces()) {
    if (each.loopback) return each;
  }
  return {};
}

class VerbsLink : public ::testing::Test {
 protected:
  std::optional<VerbsPort> find(std::string& reason) const {
    return find_verbs_port(FAKE_IBVERBS, interface_, address_, reason);
  }
  std::string open(Station& station) const {
    std::string reason;
    const auto port = find(reason);
    if (!port) return reason;
    OpenedVerbs opened = open_verbs_link(FAKE_IBVERBS, *port, station.world.environment, reason);
    station.link = std::move(opened.link);
    station.queue_pair = opened.address;
    return reason;
  }
  /// Begins with new stations.
  void open_both() {
    left_place_ = std::make_unique<Station>();
    right_place_ = std::make_unique<Station>();
    ASSERT_EQ(open(left()), "");
    ASSERT_EQ(open(right()), "");
    to_right_.to = right().name();
  }
  Station& left() const { return *left_place_; }
  Station& right() const { return *right_place_; }
  /// Sends frames until the fault has happened.
  void send_until(const std::function<bool()>& done) {
    EXPECT_TRUE(test::eventually([&] {
      left().send_once(to_right_, {numbered(++sent_, 64)});
      left().poll();
      return done();
    }));
  }

  const Variable late_{"FAKE_VERBS_LATE", "1"};  // so that a buffer that is used again too early shows
  Interface interface_ = loopback_interface();
  SocketAddress address_ = test::loopback(SocketAddress::Family::v4);
  std::unique_ptr<Station> left_place_ = std::make_unique<Station>();
  std::unique_ptr<Station> right_place_ = std::make_unique<Station>();
  link::Path to_right_;
  std::uint32_t sent_ = 0;
};

TEST_F(VerbsLink, FindsTheGidOfTheAddress) {
  std::string reason;
  const auto port = find(reason);
  ASSERT_TRUE(port) << reason;
  EXPECT_EQ(port->name(), "fake_" + interface_.name + "/1");
  EXPECT_EQ(port->gid_index, 2U) << "the first is of another address, the second of RoCE version 1";
  EXPECT_EQ(port->gid.ip_text(), "::ffff:127.0.0.1");
  EXPECT_TRUE(port->active);
  EXPECT_EQ(port->mtu, 1024U);
  EXPECT_EQ(port->speed_mbit, 100000U);
}

TEST_F(VerbsLink, SaysWhyThereIsNoDevice) {
  std::string reason;
  address_ = test::loopback(SocketAddress::Family::v6);
  EXPECT_FALSE(find(reason));
  EXPECT_EQ(reason, "no RDMA device has a RoCE version 2 GID of ::1 on " + interface_.name);
  const Variable none("FAKE_VERBS_FAIL", "ibv_get_device_list");
  EXPECT_FALSE(find(reason));
  EXPECT_NE(reason.find("no RDMA device"), std::string::npos) << reason;
}

TEST_F(VerbsLink, SaysWhichCallHasFailed) {
  const Variable refused("FAKE_VERBS_ERRNO", std::to_string(ENOMEM));
  for (const char* const call :
       {"ibv_open_device", "ibv_alloc_pd", "ibv_reg_mr", "ibv_create_comp_channel", "ibv_create_cq",
        "ibv_create_qp", "ibv_modify_qp", "ibv_post_recv", "_ibv_query_gid_table", "ibv_query_port"}) {
    const Variable fails("FAKE_VERBS_FAIL", call);
    const std::string reason = open(left());
    EXPECT_EQ(left().link, nullptr) << call;
    const bool looks = std::string(call).find("query_gid") != std::string::npos ||
                       std::string(call) == "ibv_query_port" || std::string(call) == "ibv_open_device";
    EXPECT_TRUE(looks || reason.find(call) != std::string::npos) << reason;
    EXPECT_TRUE(looks || reason.find("ulimit -l") != std::string::npos) << reason;
    EXPECT_FALSE(reason.empty());
  }
  EXPECT_EQ(open(left()), "") << "nothing is left behind";
}

TEST_F(VerbsLink, ASleeperMissesNoFrame) {
  open_both();
  pollfd waits{right().link->descriptors().front(), POLLIN, 0};
  const auto readable = [&] { return ::poll(&waits, 1, 0) == 1; };
  for (std::uint32_t round = 0; round < 3; ++round) {
    right().link->before_sleep();
    EXPECT_TRUE(right().poll().empty());
    EXPECT_FALSE(readable());
    left().send(to_right_, {numbered(round, 64)});
    left().poll();  // the library sends with the next call
    EXPECT_TRUE(test::eventually(readable)) << "a sleeper is not woken";
    EXPECT_EQ(right().receive(1).size(), 1U);
    EXPECT_FALSE(readable()) << "a sleeper would not sleep again";
  }
  // A frame that is there already wakes nobody: the poll before the sleep finds it.
  left().send(to_right_, {numbered(9, 64)});
  left().poll();
  EXPECT_TRUE(test::eventually([&] {
    right().link->before_sleep();
    return right().poll().size() == 1;
  }));
}

TEST_F(VerbsLink, AnyFailureOfTheDeviceEndsTheLinkAlone) {
  for (const char* const fault :
       {"remove@20", "vanish@20", "unlist@20", "send_error@20", "send_silence@20", "post_error@20"}) {
    const Variable set("FAKE_VERBS_FAULT", fault);
    open_both();
    send_until([&] {
      left().link->before_sleep();
      left().link->read_path_errors({});  // as an engine does while something seems wrong
      return !left().link->has_carrier();
    });
    EXPECT_NE(left().world.log.text().find("is no longer used ("), std::string::npos) << fault;
    EXPECT_EQ(left().send_once(to_right_, {numbered(1, 64), numbered(2, 64)}), 2U)
        << "frames are lost, but the link is not full: " << fault;
    EXPECT_TRUE(left().poll().empty());
    const std::vector<link::PathError> errors = left().await_path_error();
    ASSERT_EQ(errors.size(), 1U) << fault;
    EXPECT_EQ(errors[0].peer, to_right_.to);
    EXPECT_EQ(errors[0].status, Status::unreachable);
    EXPECT_TRUE(errors[0].vouched);
    pollfd waits{left().link->descriptors().front(), POLLIN, 0};
    EXPECT_EQ(::poll(&waits, 1, 0), 0) << "a sleeper on the dead device would not sleep";
    EXPECT_TRUE(right().link->has_carrier());
  }
}

TEST_F(VerbsLink, AReceiveThatFailsEndsTheLink) {
  const Variable set("FAKE_VERBS_FAULT", "receive_error@5");
  open_both();
  link::Path to_left;
  to_left.to = left().name();
  send_until([&] {
    right().send_once(to_left, {numbered(1, 64)});
    right().poll();
    return !left().link->has_carrier();
  });
  EXPECT_NE(left().world.log.text().find("a receive has failed"), std::string::npos);
}

TEST_F(VerbsLink, ADeviceThatIsBackIsUsedWithANewQueuePair) {
  open_both();
  std::vector<SocketAddress> moves;
  left().link->on_move([&](std::uint8_t, const SocketAddress& now) { moves.push_back(now); });
  {
    const Variable set("FAKE_VERBS_FAULT", "remove@20");
    send_until([&] {
      left().link->before_sleep();
      return !left().link->has_carrier();
    });
  }
  const auto is_back = [&] {
    left().link->before_sleep();
    left().poll();
    return left().link->has_carrier();
  };
  {
    const Variable shorter("FAKE_VERBS_MTU", "2");
    const Time until = left().world.clock.now() + 1500ms;
    while (left().world.clock.now() < until) EXPECT_FALSE(is_back()) << "it carries only shorter frames now";
  }
  EXPECT_TRUE(test::eventually(is_back));
  ASSERT_EQ(moves.size(), 1U);
  EXPECT_NE(moves[0], left().name());
  EXPECT_TRUE(moves[0].same_host(left().name()));
  EXPECT_NE(left().world.log.text().find("is used again"), std::string::npos);
  link::Path to_left;
  to_left.to = moves[0];
  const auto arrives = [&](Station& from, const link::Path& to, Station& at, std::uint32_t number) {
    from.send(to, {numbered(number, 64)});
    return test::eventually([&] {
      from.poll();
      const std::vector<Numbered> frames = at.poll();
      return !frames.empty() && frames.back().number == number;
    });
  };
  for (std::uint32_t number = 100; number < 900; number += 2) {
    ASSERT_TRUE(arrives(left(), to_right_, right(), number)) << number;
    ASSERT_TRUE(arrives(right(), to_left, left(), number + 1)) << number;
  }
}

TEST_F(VerbsLink, APortThatIsDownComesBack) {
  const Variable set("FAKE_VERBS_FAULT", "port_down@5");
  open_both();
  const auto look = [&] {
    left().link->before_sleep();
    return left().link->has_carrier();
  };
  send_until([&] { return !look(); });
  EXPECT_EQ(left().await_path_error().size(), 1U);
  EXPECT_EQ(left().send_once(to_right_, {numbered(1, 64)}), 1U) << "as if it had been lost";
  EXPECT_TRUE(test::eventually(look));
  right().poll();
  left().send(to_right_, {numbered(77, 64)});
  left().poll();
  EXPECT_TRUE(test::eventually([&] {
    const std::vector<Numbered> frames = right().poll();
    return !frames.empty() && frames.back().number == 77;
  }));
}

TEST_F(VerbsLink, AGidThatMovesIsFoundAgain) {
  const Variable set("FAKE_VERBS_FAULT", "move_gid@5");
  open_both();
  const auto look = [&] {
    left().link->before_sleep();
    left().poll();
    return left().link->has_carrier();
  };
  send_until([&] { return !look(); });
  EXPECT_NE(left().world.log.text().find("its GID is no longer the same"), std::string::npos);
  EXPECT_TRUE(test::eventually(look));
  EXPECT_TRUE(test::eventually([&] {
    left().send_once(to_right_, {numbered(77, 64)});
    left().poll();
    const std::vector<Numbered> frames = right().poll();
    return !frames.empty() && frames.back().number == 77;
  })) << "address handles of the new index";
}

TEST_F(VerbsLink, APeerWithoutAnAddressHandleLosesItsFrames) {
  open_both();
  const Variable fails("FAKE_VERBS_FAIL", "ibv_create_ah");
  EXPECT_EQ(left().send_once(to_right_, {numbered(1, 64), numbered(2, 64)}), 2U);
  EXPECT_EQ(left().world.counters.link_unsendable, 2U);
  EXPECT_TRUE(left().link->has_carrier());
}

TEST_F(VerbsLink, SendsMoreThanTheQueueHolds) {
  open_both();
  std::uint32_t got = 0;
  const auto all_arrived = [&](std::uint32_t count) {
    left().poll();
    for (const Numbered& frame : right().poll()) {
      EXPECT_TRUE(frame.intact) << frame.number;
      ++got;
    }
    return got >= count;
  };
  for (std::uint32_t i = 0; i < 4000; i += 40) {
    std::vector<std::vector<std::byte>> frames;
    for (std::uint32_t j = 0; j < 40; ++j) frames.push_back(numbered(i + j, 8 + (i + j) % 1000));
    left().send(to_right_, frames);
    EXPECT_TRUE(test::eventually([&] { return all_arrived(i + 40); })) << i << ": " << got;
  }
}

}  // namespace
}  // namespace cluster::os
