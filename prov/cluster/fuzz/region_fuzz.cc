// The table of regions of a hostile peer on this node: its entries change between two accesses, and the welcome that introduces
// it has any bytes. This side must touch nothing but its own buffers and memory of the peer.
//
// The peer is a child of this process, so copies by the kernel go to the child. The table and a region are shared with it, and
// this process writes what the peer would write.
#include <fuzzer/FuzzedDataProvider.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <memory>
#include <vector>

#include "fuzz/hostile_input.h"
#include "shm/peer_regions.h"
#include "support/fake_environment.h"
#include "support/process_address.h"

namespace {

using namespace cluster;
using namespace cluster::shm;

constexpr std::size_t kRegionBytes = 192 * 1024;
constexpr std::uint64_t kKeys = 4;

/// What both processes know.
struct Control {
  RegionWelcome right;  ///< the child writes it
  RegionWelcome sent;   ///< the child sends it
  bool small_table;
  std::uint32_t listens;
};

class Target {
 public:
  Target() {
    std::string reason;
    control_ = os::SharedMemory::create(4096, file_, reason);
    region_ = os::SharedMemory::create(kRegionBytes, region_file_, reason);
    small_ = os::SharedMemory::create_unwritable(4096, small_file_, reason);
    table_ = os::SharedMemory::create_unwritable(RegionEntries::kBytes, table_file_, reason);
    if (!control_ || !region_ || !small_ || !table_) __builtin_trap();
    if (::fork() == 0) serve();
    std::atomic_ref listens(control().listens);
    while (listens.load() == 0) ::usleep(1000);
  }

  Control& control() { return *reinterpret_cast<Control*>(control_.bytes().data()); }
  Bytes region() const { return region_.bytes(); }
  Bytes table() const { return table_.bytes(); }
  const SocketAddress& name() const { return name_; }

 private:
  [[noreturn]] void serve() {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    test::FakeRandom random(static_cast<std::uint64_t>(::getpid()));
    const os::GuardPage guard = os::GuardPage::open(random);
    std::string reason;
    KeyedListener listener = KeyedListener::listen(keyed_names(region_socket_name(name_), {}), reason);
    if (!guard || !listener) __builtin_trap();
    control().right = {.guard = guard.mark()};
    std::atomic_ref(control().listens).store(1);
    os::LocalSocket before;
    while (::getppid() != 1) {
      KeyedSocket connection = listener.accept(reason);
      if (!connection.socket) {
        ::usleep(20);
        continue;
      }
      connection.socket.wait_for_message(std::chrono::milliseconds(1000));
      RegionHello hello;
      os::Descriptor page;
      static_cast<void>(connection.socket.receive(as_bytes(&hello, sizeof hello), &page));
      const RegionWelcome welcome = control().sent;
      connection.socket.send(as_bytes(&welcome, sizeof welcome),
                             control().small_table ? small_file_ : table_file_, reason);
      before = std::move(connection.socket);
    }
    ::_exit(0);
  }

  const SocketAddress name_ = test::process_address(1);
  os::Descriptor file_, region_file_, small_file_, table_file_;
  os::SharedMemory control_, region_, small_, table_;
};

class RegionHarness {
 public:
  RegionHarness(FuzzedDataProvider& input, Target& target)
      : input_(input), target_(target), entries_(target.table()) {
    std::memset(target.table().data(), 0, sizeof(RegionHeader) + 64 * sizeof(RegionEntry));
    connect();
  }

  void step() {
    switch (input_.ConsumeIntegralInRange<int>(0, 9)) {
      case 0: connect(); break;
      case 1:
      case 2: offer(); break;
      case 3: change_field(); break;
      case 4: change_bytes(); break;
      case 5: map(); break;
      default: access(input_.ConsumeIntegralInRange<int>(0, 4), key(), address(), length());
    }
  }

 private:
  std::uint64_t base() const { return reinterpret_cast<std::uint64_t>(target_.region().data()); }
  /// Mostly the same, because it takes several steps to get anywhere with one.
  std::uint64_t key() {
    return input_.ConsumeProbability<float>() < 0.8f
               ? 0
               : input_.ConsumeIntegralInRange<std::uint64_t>(1, kKeys - 1);
  }
  std::uint64_t value() {
    const std::array<std::uint64_t, 8> some{0, 1, 64, 65536, kRegionBytes, base(), kPieceBytes, kAllMemory};
    return fuzz::near(input_, input_.PickValueInArray(some));
  }
  std::uint64_t address() {
    return input_.ConsumeBool() ? input_.ConsumeIntegralInRange<std::uint64_t>(0, kRegionBytes) : value();
  }
  std::size_t length() {
    return input_.ConsumeBool() ? input_.ConsumeIntegralInRange<std::size_t>(0, 64)
                                : input_.ConsumeIntegralInRange<std::size_t>(0, 2 * kRegionBytes);
  }

  void connect() {
    Control& control = target_.control();
    control.sent = control.right;
    control.small_table = input_.ConsumeProbability<float>() < 0.05f;
    if (input_.ConsumeProbability<float>() < 0.1f) {
      auto* const bytes = reinterpret_cast<std::uint8_t*>(&control.sent);
      bytes[input_.ConsumeIntegralInRange<std::size_t>(0, sizeof control.sent - 1)] =
          input_.ConsumeIntegral<std::uint8_t>();
    }
    PeerRegionConnector connector(random_, log_, {}, std::chrono::milliseconds(1000));
    peer_ = connector.connect(target_.name());
  }
  /// As a genuine peer does.
  void offer() {
    const std::uint64_t key = this->key();
    std::uint32_t number = entries_.find(key, RegionEntry::kLive);
    if (number == RegionEntries::kEntries) number = entries_.find_vacant(key);
    if (number == RegionEntries::kEntries) return;
    RegionEntry& entry = entries_.at(number);
    entry = {.state = 0,
             .reserved = 0,
             .key = key,
             .base = base(),
             .start = 0,
             .length = kRegionBytes,
             .generation = ++generation_,
             .unused = {}};
    entry.state = RegionEntry::kLive | RegionEntry::kReadable | RegionEntry::kWritable;
  }
  void change_field() {
    const std::uint32_t number = entries_.find(key(), RegionEntry::kLive);
    if (number == RegionEntries::kEntries) return;
    RegionEntry& entry = entries_.at(number);
    switch (input_.ConsumeIntegralInRange<int>(0, 4)) {
      case 0: entry.state = input_.ConsumeIntegralInRange<std::uint32_t>(0, 127); break;
      case 1: entry.base = value(); break;
      case 2: entry.start = value(); break;
      case 3: entry.length = value(); break;
      default: entry.generation = input_.ConsumeIntegralInRange<std::uint64_t>(0, generation_ + 1);
    }
  }
  void change_bytes() {
    const Bytes bytes = target_.table().first(sizeof(RegionHeader) + 64 * sizeof(RegionEntry));
    const auto at = input_.ConsumeIntegralInRange<std::size_t>(0, bytes.size() - 1);
    const auto words = input_.ConsumeBytes<std::uint8_t>(input_.ConsumeIntegralInRange<std::size_t>(1, 64));
    if (!words.empty())
      std::memcpy(bytes.data() + at, words.data(), std::min(words.size(), bytes.size() - at));
  }
  /// So many uses that this side maps the region.
  void map() {
    const std::uint64_t key = this->key();
    for (std::uint32_t i = 0; i <= MappedRegions::kUsesBefore; ++i) access(0, key, 0, 8);
    access(0, key, 0, kRegionBytes);
  }
  void access(int how, std::uint64_t key, std::uint64_t address, std::size_t length) {
    if (peer_ == nullptr) return;
    std::vector<std::byte> buffer(length);
    const Bytes bytes(buffer);
    const ConstBytes content(bytes);
    switch (how) {
      case 0: peer_->read(key, address, {&bytes, 1}, 0, length); break;
      case 1: peer_->load(key, address, bytes); break;
      case 2: peer_->judge_write(key, address, length); break;
      case 3: peer_->write(key, address, {{&content, 1}, 0, length}); break;
      default: peer_->store(key, address, content);
    }
  }

  FuzzedDataProvider& input_;
  Target& target_;
  RegionEntries entries_;
  std::uint64_t generation_ = 0;
  test::FakeRandom random_{static_cast<std::uint64_t>(::getpid())};
  test::FakeLog log_;
  std::unique_ptr<LocalMemory> peer_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static Target target;
  constexpr std::size_t kInputMax = 1024;  // each step makes system calls
  FuzzedDataProvider input(data, size < kInputMax ? size : kInputMax);
  RegionHarness harness(input, target);
  while (input.remaining_bytes() > 0) harness.step();
  return 0;
}
