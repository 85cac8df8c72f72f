// Two engines joined by a network, with RDMA devices that a fabric of the test joins.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <vector>

#include "support/fake_read_device.h"
#include "support/node.h"
#include "verbs/verbs_transport.h"

namespace cluster::test {

using protocol::Completion;

inline std::vector<std::byte> pattern(std::size_t size, unsigned seed) {
  std::vector<std::byte> bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i * 31 + seed * 7 + (i >> 8));
  return bytes;
}

class DeviceTest : public EngineTest {
 protected:
  static transport::EngineSettings settings() {
    transport::EngineSettings settings = node_settings();
    settings.device_reads = true;
    return settings;
  }
  NodeKind with_devices(std::initializer_list<FakeDeviceFabric*> fabrics) {
    NodeKind kind = also;
    std::vector<link::OpenReadDevice> devices;
    for (FakeDeviceFabric* const each : fabrics) devices.push_back(FakeReadDevice::opener(*each));
    kind.further_transports.emplace_back([this, devices](const transport::TransportContext& context) {
      return std::make_unique<verbs::VerbsTransport>(context, devices, places);
    });
    return kind;
  }
  std::unique_ptr<Node> node(const SocketAddress& name, const SocketAddress& peer, std::uint64_t epoch) {
    return node(name, peer, epoch, {&fabric});
  }
  std::unique_ptr<Node> node(const SocketAddress& name, const SocketAddress& peer, std::uint64_t epoch,
                             std::initializer_list<FakeDeviceFabric*> fabrics) {
    return std::make_unique<Node>(network, name, peer, epoch, nullptr, settings(), with_devices(fabrics));
  }
  static void begin_send(Node& from, const std::vector<std::byte>& bytes, std::uint64_t to = 0) {
    const ConstBytes slice = bytes;
    ASSERT_EQ(from.engine.send({.slices = {&slice, 1}, .length = bytes.size(), .to = to}), Status::ok);
  }
  static void begin_receive(Node& at, std::vector<std::byte>& into) {
    const Bytes slice = into;
    ASSERT_EQ(at.engine.receive({.slices = {&slice, 1}, .ignore = ~std::uint64_t{0}}), Status::ok);
  }
  template <typename... Nodes>
  void pass_until(const std::function<bool()>& done, Nodes&... nodes) {
    bool reached = done();
    for (int i = 0; i < 3000 && !reached; ++i) {
      pass(nodes...);
      reached = done();
    }
    EXPECT_TRUE(reached);
  }
  /// Both send at once.
  void exchange_both_ways(std::size_t size, unsigned seed) {
    const std::vector<std::byte> from_a = pattern(size, seed), from_b = pattern(size, seed + 5);
    std::vector<std::byte> at_a(size), at_b(size);
    begin_receive(*a, at_a);
    begin_receive(*b, at_b);
    begin_send(*a, from_a);
    begin_send(*b, from_b);
    std::size_t arrived = 0;
    pass_until([&] { return (arrived += take(a->received).size() + take(b->received).size()) == 2; }, *a, *b);
    EXPECT_TRUE(at_a == from_b && at_b == from_a);
  }
  /// Sends a message from b to a, and checks that it arrives, once and intact.
  void exchange(std::size_t size, unsigned seed) {
    const std::vector<std::byte> sent = pattern(size, seed);
    std::vector<std::byte> got(size);
    begin_receive(*a, got);
    begin_send(*b, sent);
    std::vector<Completion> at_a, at_b;
    pass_until(
        [&] {
          for (const Completion& each : take(a->received)) at_a.push_back(each);
          for (const Completion& each : take(b->sent)) at_b.push_back(each);
          return !at_a.empty() && !at_b.empty();
        },
        *a, *b);
    ASSERT_EQ(at_a.size(), 1u);
    EXPECT_EQ(at_a[0].status, Status::ok);
    EXPECT_EQ(at_b[0].status, Status::ok);
    EXPECT_TRUE(got == sent) << size;
    EXPECT_FALSE(fabric.knows(got));
    EXPECT_FALSE(fabric.knows(sent));
  }
  /// The first message makes both sides connect.
  void connect() {
    exchange(kLong, 1);
    ASSERT_EQ(a->counters().device_reads, 0u);
    exchange(kLong, 2);
    ASSERT_EQ(a->counters().device_reads, 1u);
  }

  static constexpr std::size_t kLong = 3'000'000;
  FakeDeviceFabric fabric;
  std::size_t places = 256;
  NodeKind also;  ///< what the nodes have otherwise
  std::unique_ptr<Node> a = node(kA, kB, 1000);
  std::unique_ptr<Node> b = node(kB, kA, 2000);
};

}  // namespace cluster::test
