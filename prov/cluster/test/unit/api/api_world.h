// The environment of api/ for tests: a clock that advances when it is read, a network in memory, and
// libfabric's
// objects opened as an application opens them.
#pragma once

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "api/fabric.h"
#include "shm/local_listener.h"
#include "shm/local_memory.h"
#include "support/process_address.h"

namespace cluster::api::test {

class PassingClock final : public Clock {
 public:
  Time now() override { return Time(Duration(now_.fetch_add(step.count(), std::memory_order_relaxed))); }

  void advance(Duration time) { now_.fetch_add(time.count(), std::memory_order_relaxed); }

  Duration step = 1us;  ///< time that passes with each reading

 private:
  std::atomic<Duration::rep> now_{1'000'000'000};
};

/// Its numbers name doorbells, which keeps concurrent test programs apart.
class CountingRandom final : public Random {
 public:
  std::uint64_t next() override { return next_ += 0x9E3779B97F4A7C15u; }

 private:
  std::uint64_t next_ = static_cast<std::uint64_t>(::getpid());
};

class KeptLog final : public Log {
 public:
  bool enabled(LogLevel level) const override { return level == LogLevel::warn; }
  void write(LogLevel, const char* line) override { lines.emplace_back(line); }
  std::vector<std::string> lines;
};

/// Frames in flight, by destination. A frame to an address without a link causes a path error.
struct Network {
  struct Parcel {
    SocketAddress from;
    std::vector<std::byte> bytes;
  };
  std::unordered_map<SocketAddress, std::deque<Parcel>, SocketAddressHash> mailboxes;
};

class MailLink final : public link::Link {
 public:
  MailLink(Network& network, const SocketAddress& name) : network_(network), name_(name) {
    network_.mailboxes[name_];
  }
  ~MailLink() override { network_.mailboxes.erase(name_); }
  const char* name() const override { return "mail"; }
  std::size_t frame_max() const override { return 1472; }
  std::size_t send_burst(std::span<const link::OutFrame> frames) override {
    for (const link::OutFrame& frame : frames) {
      const auto mailbox = network_.mailboxes.find(frame.path->to);
      if (mailbox == network_.mailboxes.end()) {
        path_errors_.push_back({frame.path->to, Status::refused});
        path_errors_.back().set_quote(frame.pieces[0]);
        continue;
      }
      Network::Parcel parcel{name_, {}};
      for (std::size_t i = 0; i < frame.count; ++i) {
        parcel.bytes.insert(parcel.bytes.end(), frame.pieces[i].begin(), frame.pieces[i].end());
      }
      mailbox->second.push_back(std::move(parcel));
    }
    return frames.size();
  }
  std::size_t receive_burst(std::span<link::InFrame> frames) override {
    std::deque<Network::Parcel>& mailbox = network_.mailboxes[name_];
    opened_.clear();
    while (!mailbox.empty() && opened_.size() < frames.size()) {
      opened_.push_back(std::move(mailbox.front()));
      mailbox.pop_front();
    }
    for (std::size_t i = 0; i < opened_.size(); ++i) {
      frames[i].bytes = opened_[i].bytes;
      frames[i].from = {};
      frames[i].from.to = opened_[i].from;
    }
    return opened_.size();
  }
  std::size_t read_path_errors(std::span<link::PathError> path_errors) override {
    const std::size_t count = std::min(path_errors.size(), path_errors_.size());
    std::copy_n(path_errors_.begin(), count, path_errors.begin());
    path_errors_.erase(path_errors_.begin(), path_errors_.begin() + static_cast<std::ptrdiff_t>(count));
    return count;
  }

 private:
  Network& network_;
  SocketAddress name_;
  std::deque<Network::Parcel> opened_;
  std::vector<link::PathError> path_errors_;
};

/// Joins every group; nothing ever arrives.
class SilentMulticast final : public link::MulticastJoiner {
 public:
  std::unique_ptr<link::MulticastReceiver> join(const SocketAddress&, std::span<const SocketAddress>,
                                                std::string&) override {
    return std::make_unique<Receiver>();
  }

 private:
  struct Receiver final : link::MulticastReceiver {
    std::size_t receive_burst(std::span<link::InFrame>) override { return 0; }
    int descriptor() const override { return -1; }
  };
};

inline SocketAddress host(std::uint8_t last, std::uint16_t port) {
  const std::array ip{std::byte{10}, std::byte{0}, std::byte{0}, std::byte{last}};
  return SocketAddress::v4(ip.data(), port);
}

inline sockaddr_in raw(const SocketAddress& address) {
  sockaddr_storage storage;
  address.to(storage);
  sockaddr_in in;
  std::memcpy(&in, &storage, sizeof in);
  return in;
}

/// What copy_info() returns begins with the fi_info.
struct InfoCopy {
  fi_info info;
  fi_tx_attr tx;
  fi_rx_attr rx;
  fi_ep_attr ep;
  fi_domain_attr domain;
};

/// Every engine has a node of its own, so its frames pass the network; or all are on one node.
class MemoryPlatform final : public Platform {
 public:
  Log& log() override { return kept; }
  PassingClock& clock() override { return clock_; }
  Random& random() override { return random_; }
  std::uint64_t yield_processor() override {
    ++yields;
    std::this_thread::yield();
    clock_.advance(others_run);
    return static_cast<std::uint64_t>(others_run.count());
  }
  unsigned threads_per_processor() override { return threads; }
  void sleep_shortest() override {
    ++sleeps;
    clock_.advance(60us);
  }
  std::unique_ptr<engine::Engine> build_engine(const EngineRequest& request, int& error) override {
    if (const auto act = std::exchange(while_building, nullptr)) act();
    last_wanted = request.wanted;
    last_auth_key.assign(request.auth_key.begin(), request.auth_key.end());
    if (fail_with != 0) {
      error = fail_with;
      return nullptr;
    }
    ++built;
    const SocketAddress own = one_node
                                  ? cluster::test::process_address(static_cast<std::uint16_t>(9000 + built))
                                  : host(static_cast<std::uint8_t>(built), 9000);
    SocketAddress name = request.wanted.empty() ? own : request.wanted;
    if (name.port() == 0) name = name.with_port(static_cast<std::uint16_t>(9000 + built));
    settings.linger = 100ms;
    const auto counters = std::make_shared<Counters>();
    engine::EngineParts parts{
        {clock_, random_, kept, *counters}, settings, name, 0, nullptr, nullptr, counters, request.type};
    parts.epoch = static_cast<std::uint64_t>(built);
    parts.roster = request.roster;
    parts.memory = last_memory = request.memory;
    if (open_regions) parts.region_connector = open_regions();
    if (!alone) parts.link = std::make_unique<MailLink>(network, name);
    if (multicast) parts.multicast = std::make_unique<SilentMulticast>();
    std::string reason;
    if (one_node) parts.local_listener = shm::open_listener(name, parts.epoch, {}, parts.environment, reason);
    return std::make_unique<engine::Engine>(std::move(parts));
  }
  SocketAddress resolve(const char* node, const char* service, SocketAddress::Family family) override {
    const auto found = names.find(service == nullptr ? node : std::string(node) + ":" + service);
    const bool fits =
        found != names.end() && (family == SocketAddress::Family::none || family == found->second.family());
    return fits ? found->second : SocketAddress{};
  }

  fi_info* copy_info(const fi_info& from) override {
    auto* const copy = new InfoCopy{from, *from.tx_attr, *from.rx_attr, *from.ep_attr, *from.domain_attr};
    copy->info.tx_attr = &copy->tx;
    copy->info.rx_attr = &copy->rx;
    copy->info.ep_attr = &copy->ep;
    copy->info.domain_attr = &copy->domain;
    copy->info.src_addr = copy->info.dest_addr = nullptr;
    ++infos;
    return &copy->info;
  }
  void free_info(fi_info* info) override {
    std::free(info->src_addr);
    std::free(info->dest_addr);
    delete reinterpret_cast<InfoCopy*>(info);
    --infos;
  }

  KeptLog kept;
  Network network;
  int infos = 0;  ///< copies of an fi_info that nobody has freed
  transport::EngineSettings settings;
  std::map<std::string, SocketAddress> names;
  SocketAddress last_wanted;
  std::vector<std::byte> last_auth_key;
  std::shared_ptr<carrier::RegisteredMemory> last_memory;
  std::function<void()> while_building;  ///< called once, while the next engine is built
  int fail_with = 0;
  int built = 0;
  bool alone = false;      ///< engines have no link
  bool multicast = false;  ///< engines can join groups
  bool one_node = false;   ///< engines reach each other through shared memory
  /// How engines reach the registered memory of others; empty: by the library of the others.
  std::function<std::unique_ptr<shm::RegionConnector>()> open_regions;
  Duration others_run = 0us;  ///< how long other threads hold the processor after a yield
  unsigned threads = 1;       ///< how many share a processor
  std::atomic<int> yields{0};
  std::atomic<int> sleeps{0};

 private:
  PassingClock clock_;
  CountingRandom random_;
};

/// An answer of fi_getinfo.
struct Info {
  fi_info info{};
  fi_tx_attr tx{};
  fi_rx_attr rx{};
  fi_ep_attr ep{};
  fi_domain_attr domain{};

  Info() {
    info.caps = FI_MSG | FI_TAGGED | FI_SEND | FI_RECV | FI_DIRECTED_RECV | FI_SOURCE;
    info.addr_format = FI_SOCKADDR_IN;
    info.tx_attr = &tx;
    info.rx_attr = &rx;
    info.ep_attr = &ep;
    info.domain_attr = &domain;
    ep.type = FI_EP_RDM;
    ep.max_msg_size = 1 << 30;
    tx.inject_size = protocol::kInjectMax;
    tx.size = rx.size = 256;
  }
};

class ApiTest : public ::testing::Test {
 protected:
  ApiTest() {
    fi_fabric_attr attributes{};
    attributes.api_version = FI_VERSION(1, 17);
    EXPECT_EQ(open_fabric(&attributes, &fabric, this, platform), 0);
    EXPECT_EQ(fi_domain(fabric, &info.info, &domain, this), 0);
  }
  ~ApiTest() override {
    EXPECT_EQ(fi_close(&domain->fid), 0);
    EXPECT_EQ(fi_close(&fabric->fid), 0);
  }

  fid_cq* open_cq(fi_cq_format format = FI_CQ_FORMAT_TAGGED, fi_wait_obj wait = FI_WAIT_NONE) {
    fi_cq_attr attributes{};
    attributes.format = format;
    attributes.wait_obj = wait;
    fid_cq* cq = nullptr;
    EXPECT_EQ(fi_cq_open(domain, &attributes, &cq, this), 0);
    return cq;
  }
  fid_av* open_av() {
    fi_av_attr attributes{};
    fid_av* av = nullptr;
    EXPECT_EQ(fi_av_open(domain, &attributes, &av, this), 0);
    return av;
  }
  fid_cntr* open_cntr() {
    fi_cntr_attr attributes{};
    fid_cntr* cntr = nullptr;
    EXPECT_EQ(fi_cntr_open(domain, &attributes, &cntr, this), 0);
    return cntr;
  }
  fid_ep* open_endpoint() {
    fid_ep* endpoint = nullptr;
    EXPECT_EQ(fi_endpoint(domain, &info.info, &endpoint, this), 0);
    return endpoint;
  }

  MemoryPlatform platform;
  Info info;
  fid_fabric* fabric = nullptr;
  fid_domain* domain = nullptr;
};

/// An endpoint with its address vector and queues.
struct Node {
  fid_ep* endpoint = nullptr;
  fid_av* av = nullptr;
  fid_cq* sends = nullptr;
  fid_cq* receives = nullptr;

  sockaddr_in name() const {
    sockaddr_in address{};
    std::size_t size = sizeof address;
    EXPECT_EQ(fi_getname(&endpoint->fid, &address, &size), 0);
    return address;
  }
  fi_addr_t insert(const Node& peer) const {
    const sockaddr_in address = peer.name();
    fi_addr_t handle = FI_ADDR_NOTAVAIL;
    EXPECT_EQ(fi_av_insert(av, &address, 1, &handle, 0, nullptr), 1);
    return handle;
  }
  void close() const {
    EXPECT_EQ(fi_close(&endpoint->fid), 0);
    EXPECT_EQ(fi_close(&av->fid), 0);
    EXPECT_EQ(fi_close(&sends->fid), 0);
    EXPECT_EQ(fi_close(&receives->fid), 0);
  }
};

/// Two endpoints with each other's address.
class PairTest : public ApiTest {
 protected:
  void start(std::uint64_t send_bind = 0, std::uint64_t receive_bind = 0) {
    for (Node* node : {&left, &right}) {
      node->endpoint = open_endpoint();
      node->av = open_av();
      node->sends = open_cq();
      node->receives = open_cq();
      EXPECT_EQ(fi_ep_bind(node->endpoint, &node->av->fid, 0), 0);
      EXPECT_EQ(fi_ep_bind(node->endpoint, &node->sends->fid, FI_TRANSMIT | send_bind), 0);
      EXPECT_EQ(fi_ep_bind(node->endpoint, &node->receives->fid, FI_RECV | receive_bind), 0);
      EXPECT_EQ(fi_enable(node->endpoint), 0);
    }
    to_right = left.insert(right);
    to_left = right.insert(left);
  }
  ~PairTest() override {
    if (left.endpoint == nullptr) return;
    left.close();
    right.close();
  }

  /// Reads `cq` until it has an entry, while both endpoints take turns; gives up after a while.
  ssize_t await(fid_cq* cq, fi_cq_tagged_entry& entry, fi_addr_t* source = nullptr) {
    constexpr int kTurnsMax = 100000;
    ssize_t result = -FI_EAGAIN;
    for (int turn = 0; turn < kTurnsMax && result == -FI_EAGAIN; ++turn) {
      turn_both();
      fi_addr_t from = FI_ADDR_NOTAVAIL;
      result = fi_cq_readfrom(cq, &entry, 1, &from);
      if (result > 0 && source != nullptr) *source = from;
    }
    return result;
  }
  ssize_t await_error(fid_cq* cq, fi_cq_err_entry& error) {
    fi_cq_tagged_entry entry{};
    EXPECT_EQ(await(cq, entry), -FI_EAVAIL);
    return fi_cq_readerr(cq, &error, 0);
  }
  void turn_both() {
    fi_cq_read(left.sends, nullptr, 0);
    fi_cq_read(right.sends, nullptr, 0);
  }
  void expect_nothing(fid_cq* cq) {
    fi_cq_tagged_entry entry{};
    for (int turn = 0; turn < 300; ++turn) {
      turn_both();
      ASSERT_EQ(fi_cq_read(cq, &entry, 1), -FI_EAGAIN);
    }
  }

  Node left;
  Node right;
  fi_addr_t to_right = FI_ADDR_NOTAVAIL;
  fi_addr_t to_left = FI_ADDR_NOTAVAIL;
};

}  // namespace cluster::api::test
