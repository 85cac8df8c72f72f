// What another process of this user can send to the listener of an endpoint on its node, with a key and
// without one. It sends messages of any length, with or without a descriptor, and hellos of which some bytes
// were changed. The memory behind a descriptor has any size, sealed or not, and a ring changes while it is
// read. A ring is attached only if its hello is valid, and only whole segments come out of it. With a key,
// nothing is attached unless the connector has the key.
#include <fuzzer/FuzzedDataProvider.h>
#include <sys/mman.h>
#include <unistd.h>

#include <memory>
#include <optional>
#include <vector>

#include "fuzz/seal_material.h"
#include "os/shared_memory.h"
#include "shm/greeting.h"
#include "shm/hello.h"
#include "shm/local_listener.h"
#include "support/fake_environment.h"
#include "support/process_address.h"
#include "unit/shm/ring_memory.h"

namespace {

using namespace cluster;
using namespace cluster::shm;

/// A listener lives as long as the process, because it takes milliseconds to open and close one.
struct Target {
  explicit Target(bool with_key) : name(test::process_address(with_key ? 2 : 1)) {
    // No other process and no other target may have the name of its doorbell.
    world.random = test::FakeRandom(static_cast<std::uint64_t>(::getpid()) << 1 | (with_key ? 1 : 0));
    if (with_key) keys = fuzz::credentials(seal::Mode::auth, 'k').keys;
    std::string reason;
    listener = open_listener(name, 1, {.keys = keys}, world.environment(), reason);
    if (!listener) __builtin_trap();
  }

  const SocketAddress name;
  seal::JobKeys keys;
  test::FakeEnvironment world;
  std::unique_ptr<LocalListener> listener;
};

Target& target(bool with_key) {
  static Target plain(false);
  static Target keyed(true);
  return with_key ? keyed : plain;
}

class ListenerHarness {
 public:
  explicit ListenerHarness(FuzzedDataProvider& input)
      : input_(input), keyed_(input.ConsumeBool()), target_(target(keyed_)) {
    connect();
  }
  /// Ends the connection, so that the next input finds the listener as this one has found it.
  ~ListenerHarness() {
    greeting_.reset();
    connection_ = {};
    target_.world.clock.advance(2s);
    inboxes_.clear();
    target_.listener->accept(inboxes_);
  }

  void step() {
    switch (input_.ConsumeIntegralInRange<int>(0, 7)) {
      case 0: connect(); break;
      case 1: greet(); break;
      case 2: send(made_up()); break;
      case 3: change_ring(); break;
      case 4:
        target_.world.clock.advance(Duration(input_.ConsumeIntegralInRange<std::int64_t>(0, 2'000'000'000)));
        break;
      case 5: send(hello()); break;
      default: break;
    }
    accept();
    read();
  }

 private:
  static constexpr std::size_t kInboxesMax = 4;

  void connect() {
    greeting_.reset();
    std::string reason;
    connection_ = connect_to(keyed_names(socket_name(target_.name), target_.keys), true, reason);
  }

  /// Like a genuine connector, which has the key. Only its hello may be wrong.
  void greet() {
    if (!connection_.socket) return;
    if (!greeting_) {
      const std::vector<std::byte> words = hello();
      greeting_.emplace(connection_, words, memory(), target_.world.random);
      std::string reason;
      if (!greeting_->begin(connection_.socket, reason)) greeting_.reset();
    } else if (greeting_->advance(connection_.socket) == HelloSender::State::sent) {
      proved_ = true;
    }
  }

  std::vector<std::byte> hello() {
    Hello right(test::process_address(input_.ConsumeIntegralInRange<std::uint16_t>(3, 6)),
                input_.ConsumeIntegralInRange<std::uint64_t>(1, 9), kSmall);
    std::vector<std::byte> bytes(sizeof right);
    std::memcpy(bytes.data(), &right, sizeof right);
    for (int change = input_.ConsumeIntegralInRange<int>(0, 3); change > 0; --change) {
      bytes[input_.ConsumeIntegralInRange<std::size_t>(0, bytes.size() - 1)] =
          std::byte{input_.ConsumeIntegral<std::uint8_t>()};
    }
    if (input_.ConsumeProbability<float>() < 0.2f)
      bytes.resize(input_.ConsumeIntegralInRange<std::size_t>(0, bytes.size() + 40));
    return bytes;
  }
  std::vector<std::byte> made_up() {
    const std::vector<std::uint8_t> content = input_.ConsumeBytes<std::uint8_t>(200);
    std::vector<std::byte> bytes(content.size());
    if (!content.empty()) std::memcpy(bytes.data(), content.data(), content.size());
    return bytes;
  }
  /// Mostly what a ring of this geometry needs.
  os::Descriptor memory() {
    os::Descriptor file;
    std::string reason;
    const std::size_t size = kSmall.total_bytes();
    switch (input_.ConsumeIntegralInRange<int>(0, 7)) {
      case 0: ring_ = os::SharedMemory::create(4096, file, reason); break;
      case 1: ring_ = os::SharedMemory::create(2 * size, file, reason); break;
      case 2: file = os::Descriptor(::memfd_create("unsealed", MFD_CLOEXEC)); break;
      default: ring_ = os::SharedMemory::create(size, file, reason);
    }
    return file;
  }
  void send(const std::vector<std::byte>& bytes) {
    if (!connection_.socket || bytes.empty()) return;
    std::string reason;
    if (input_.ConsumeBool()) {
      const os::Descriptor file = memory();
      if (file) connection_.socket.send(bytes, file, reason);
    } else {
      connection_.socket.send(bytes);
    }
  }
  void change_ring() {
    const Bytes bytes = ring_.bytes();
    if (bytes.size() < kSmall.total_bytes()) return;
    // Mostly where it matters: the control page and the first slots.
    const std::size_t most = input_.ConsumeBool() ? kSmall.slots_begin() + 8 * sizeof(Slot) : bytes.size();
    const auto at = input_.ConsumeIntegralInRange<std::size_t>(0, most - 1);
    const auto words = input_.ConsumeBytes<std::uint8_t>(input_.ConsumeIntegralInRange<std::size_t>(1, 64));
    if (!words.empty())
      std::memcpy(bytes.data() + at, words.data(), std::min(words.size(), bytes.size() - at));
  }
  void accept() {
    const std::size_t before = inboxes_.size();
    target_.listener->accept(inboxes_);
    if (inboxes_.size() > before && keyed_ && !proved_) __builtin_trap();
    if (inboxes_.size() > kInboxesMax) inboxes_.erase(inboxes_.begin());
  }
  void read() {
    for (const std::unique_ptr<Inbox>& inbox : inboxes_) {
      if (inbox->peer().empty()) __builtin_trap();
      if (!inbox->begin_batch()) continue;
      PeekedSegment seen;
      for (int count = 0; count < 4 && inbox->peek(seen); ++count) {
        if (seen.payload.size() != seen.segment.length) __builtin_trap();
        std::size_t sum = 0;
        for (const std::byte byte : seen.payload) sum += std::to_integer<std::size_t>(byte);
        sum_ = sum_ + sum;
        inbox->pop();
      }
      inbox->end_batch();
    }
  }

  FuzzedDataProvider& input_;
  const bool keyed_;
  Target& target_;
  KeyedSocket connection_;
  std::optional<HelloSender> greeting_;
  bool proved_ = false;
  os::SharedMemory ring_;
  std::vector<std::unique_ptr<Inbox>> inboxes_;
  volatile std::size_t sum_ = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::size_t kInputMax = 2048;  // each step makes system calls
  FuzzedDataProvider input(data, size < kInputMax ? size : kInputMax);
  ListenerHarness harness(input);
  while (input.remaining_bytes() > 0) harness.step();
  return 0;
}
