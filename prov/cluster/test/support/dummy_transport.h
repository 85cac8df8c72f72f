// A transport for tests that behaves like hardware. Messages travel through queues in memory, with late
// acknowledgements. Accesses to remote memory bypass the target's library, and end late and in any order. The
// device has to know the memory that it uses. A descriptor announces what comes. The class proves that a
// transport needs only one folder and one factory in EngineParts::further_transports. It is an example to
// copy.
#pragma once

#include <sys/eventfd.h>

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/end_of_memory.h"
#include "os/descriptor.h"
#include "protocol/region_table.h"
#include "transport/transport.h"
#include "transport/transport_context.h"

namespace cluster::test {

class DummyTransport;

struct ByName {
  bool operator()(const SocketAddress& a, const SocketAddress& b) const { return a.text() < b.text(); }
};

/// What connects the transports of a test, and outlives them.
struct DummyFabric {
  std::map<SocketAddress, DummyTransport*, ByName> ends;
  std::map<SocketAddress, protocol::RegionTable*, ByName>
      regions;  ///< registered, by the name of their endpoint
  std::mt19937 random{1};
  bool stalled = false;             ///< no access ends
  std::size_t accesses = 0;         ///< that have ended
  std::size_t out_of_order = 0;     ///< ... before an older one
  std::size_t registered_uses = 0;  ///< pieces of memory that the device knew by their handle
  std::size_t registrations = 0;    ///< ... that it did not know, with a handle or without
  std::size_t refused_handles = 0;  ///< ... that came with a handle of no region around them
  std::size_t pulls = 0;            ///< segments that asked for bytes
};

/// What the device of one endpoint knows about registered memory.
class DummyDevice final : public carrier::MemoryRegistrar {
 public:
  explicit DummyDevice(carrier::RegisteredMemory& memory) : memory_(memory) { memory_.add(*this); }
  ~DummyDevice() { memory_.remove(*this); }
  DummyDevice(const DummyDevice&) = delete;
  DummyDevice& operator=(const DummyDevice&) = delete;

  void registered(const carrier::RegisteredRegion& region) noexcept override {
    const std::lock_guard guard(lock_);
    enough_memory_for([&] { known_[region.handle] = {region.base, region.length}; });
  }
  void closed(const carrier::RegisteredRegion& region) noexcept override {
    const std::lock_guard guard(lock_);
    known_.erase(region.handle);
  }
  /// True if the device may use these bytes by this handle.
  bool knows(void* handle, ConstBytes bytes) {
    const std::lock_guard guard(lock_);
    const auto found = known_.find(handle);
    return found != known_.end() && bytes.data() >= found->second.data() &&
           bytes.data() + bytes.size() <= found->second.data() + found->second.size();
  }

 private:
  carrier::RegisteredMemory& memory_;
  std::mutex lock_;  ///< regions come from any thread
  std::unordered_map<void*, ConstBytes> known_;
};

class DummyTransport final : public transport::Transport, private transport::WakeSource {
 public:
  DummyTransport(const transport::TransportContext& context, DummyFabric& fabric)
      : context_(context), fabric_(fabric), device_(context.memory) {
    context_.waiter.watch(channel_.number(), *this);
    plug();
  }
  ~DummyTransport() override {
    unplug();
    context_.waiter.unwatch(channel_.number());
    for (const std::unique_ptr<transport::Peer>& peer : context_.peers.all()) peer->parts[slot()].reset();
  }
  void plug() { fabric_.ends[context_.name] = this; }
  /// Tells the peers that this end is gone.
  void unplug() {
    const auto found = fabric_.ends.find(context_.name);
    if (found != fabric_.ends.end() && found->second == this) fabric_.ends.erase(found);
  }

  const char* name() const override { return "dummy"; }
  transport::OpenResult open(transport::Peer& peer, std::string& reason) override {
    if (end_of(peer.name()) == nullptr) {
      transport::add_reason(reason, "the dummy fabric has no such end");
      return transport::OpenResult::unreached;
    }
    auto end = std::make_unique<End>(*this, peer);
    context_.reach.reached(peer, *this, end->carrier, kEagerMax);
    peer.parts[slot()] = std::move(end);
    ++open_;
    reason = "a test says so";
    return transport::OpenResult::reached;
  }
  bool look_for(transport::Peer& peer) override {
    std::string reason;
    return open(peer, reason) == transport::OpenResult::reached;
  }
  void close(transport::Peer& peer) override {
    if (!holds(peer)) return;
    peer.parts[slot()].reset();
    --open_;
    std::erase_if(inbox_, [&](const Item& item) { return item.from == peer.name(); });
  }
  bool holds(const transport::Peer& peer) const override { return peer.parts[slot()] != nullptr; }
  std::unique_ptr<carrier::MemoryAccess> reach_memory(transport::Peer& peer) override {
    return std::make_unique<Access>(*this, peer);
  }

  bool receive(transport::Turn&) override {
    for (const std::unique_ptr<transport::Peer>& peer : context_.peers.all()) {
      if (holds(*peer) && end_of(peer->name()) == nullptr) context_.peers.mark_failed(*peer, Status::ended);
    }
    bool brought = take_in();
    if (!acked_.empty()) {
      context_.messenger.acked(acked_);
      acked_.clear();
      brought = true;
    }
    return end_some() || brought;
  }
  bool holding() const override { return !inbox_.empty(); }
  void receive_held(std::uint32_t) override { take_in(); }
  /// No calm turn looks at the device's queue, so this transport must see every turn while it is in use.
  bool may_be_skipped() const override { return open_ == 0 && !wants_turn(); }
  /// A device announces by the descriptor when an access ends. This one ends accesses only in turns, unless it
  /// is stalled.
  bool wants_turn() const override {
    return !inbox_.empty() || !acked_.empty() || (!pending_.empty() && !fabric_.stalled);
  }
  bool prepare_sleep() override { return !wants_turn(); }

 private:
  static constexpr std::size_t kEagerMax = 16 * 1024;
  static constexpr std::size_t kSegmentMax = 4096;
  static constexpr std::size_t kItemsMax = 64;
  static constexpr std::size_t kAccessesMax = 16;

  struct Item {
    SocketAddress from;
    wire::Segment segment;
    std::vector<std::byte> payload;
    carrier::Token token;
  };

  class Carrier final : public carrier::Carrier {
   public:
    Carrier(DummyTransport& owner, const SocketAddress& peer)
        : carrier::Carrier({}), owner_(owner), peer_(peer) {}
    std::size_t payload_max(const wire::Segment&) const override { return kSegmentMax; }
    bool post(const wire::Segment& segment, const Gather& payload, carrier::PayloadMode,
              carrier::Token token) override {
      DummyTransport* const to = owner_.end_of(peer_);
      if (to == nullptr || to->inbox_.size() >= kItemsMax) return false;
      if (payload.handles != nullptr) owner_.use(payload.slices, payload.handles);
      owner_.fabric_.pulls += segment.kind == wire::SegmentKind::pull;
      Item item{owner_.context_.name, segment, std::vector<std::byte>(payload.length), token};
      payload.copy_to(item.payload.data());
      to->inbox_.push_back(std::move(item));
      eventfd_write(to->channel_.number(), 1);
      return true;
    }

   private:
    DummyTransport& owner_;
    const SocketAddress peer_;
  };

  struct End final : transport::TransportPeer {
    End(DummyTransport& owner, transport::Peer& peer) : carrier(owner, peer.name()) {}
    Carrier carrier;
  };

  struct Pending {
    carrier::MemoryAccess* by;
    transport::Peer* target;
    carrier::AccessTicket ticket;
    carrier::RemoteRange range;
    std::vector<ConstBytes> source;
    std::vector<std::byte> copy;  ///< of a source that the caller may change
    std::vector<Bytes> into;
    std::size_t offset = 0;
  };

  /// As a card: it reads and writes registered memory only, and registers what is not.
  class Access final : public carrier::MemoryAccess {
   public:
    Access(DummyTransport& owner, transport::Peer& peer) : MemoryAccess(false), owner_(owner), peer_(peer) {}

    carrier::Outcome put(const carrier::RemoteRange& to, const Gather& source, carrier::AccessTerms terms,
                         carrier::AccessTicket ticket) override {
      if (!takes(terms)) return carrier::Outcome::unsuited;
      Pending work{this, &peer_, ticket, to, {}, {}, {}};
      work.source.assign(source.slices.begin(), source.slices.end());
      work.offset = source.offset;
      if (terms.copied()) {
        work.copy.resize(source.length);
        source.copy_to(work.copy.data());
      } else {
        owner_.use(source.slices, source.handles);
      }
      owner_.pending_.push_back(std::move(work));
      return carrier::Outcome::pending;
    }
    carrier::Outcome get(const carrier::RemoteRange& from, const Scatter& target, carrier::AccessTerms terms,
                         carrier::AccessTicket ticket) override {
      if (!takes(terms)) return carrier::Outcome::unsuited;
      Pending work{this, &peer_, ticket, from, {}, {}, {}};
      work.into.assign(target.slices.begin(), target.slices.end());
      work.offset = target.offset;
      owner_.use(target.slices, target.handles);
      owner_.pending_.push_back(std::move(work));
      return carrier::Outcome::pending;
    }
    void end(Status status) override {
      for (std::size_t i = 0; i < owner_.pending_.size();) {
        if (owner_.pending_[i].by != this) {
          ++i;
          continue;
        }
        const carrier::AccessTicket ticket = owner_.pending_[i].ticket;
        owner_.pending_.erase(owner_.pending_.begin() + static_cast<std::ptrdiff_t>(i));
        owner_.context_.messenger.rma().over(peer_.channel, ticket, status);
      }
    }

   private:
    bool takes(const carrier::AccessTerms& terms) const {
      return !terms.after_sends() && !terms.after_puts() && owner_.pending_.size() < kAccessesMax;
    }

    DummyTransport& owner_;
    transport::Peer& peer_;
  };

  /// The device uses this memory: by its handle if it knows the handle and the memory lies in that region,
  /// otherwise after a registration for this use.
  template <typename Slice>
  void use(std::span<const Slice> slices, MemoryHandles handles) {
    for (std::size_t i = 0; i < slices.size(); ++i) {
      void* const handle = handles != nullptr ? handles[i] : nullptr;
      const bool known = handle != nullptr && device_.knows(handle, slices[i]);
      ++(known ? fabric_.registered_uses : fabric_.registrations);
      fabric_.refused_handles += handle != nullptr && !known;
    }
  }
  void on_ready(bool) override {
    eventfd_t announced = 0;
    eventfd_read(channel_.number(), &announced);
  }

  DummyTransport* end_of(const SocketAddress& name) const {
    const auto found = fabric_.ends.find(name);
    return found != fabric_.ends.end() ? found->second : nullptr;
  }

  bool take_in() {
    bool brought = false;
    while (!inbox_.empty()) {
      transport::Peer& peer = context_.peers.find_or_add(inbox_.front().from);
      if (peer.failed) break;
      if (peer.channel.carrier == nullptr) {
        std::string reason;
        context_.reach.called(peer);
        if (open(peer, reason) != transport::OpenResult::reached) {
          inbox_.pop_front();
          continue;
        }
      }
      Source source{*this};
      bool held = false;
      if (arrivals_.deliver(peer, source, held, 1) == 0) break;
      brought = true;
    }
    return brought;
  }

  /// The oldest segment.
  struct Source {
    bool next() {
      payload = item.payload;
      return true;
    }
    bool taken() {
      DummyTransport* const sender = owner.end_of(item.from);
      if (item.token != 0 && sender != nullptr) {
        sender->acked_.push_back(item.token);
        eventfd_write(sender->channel_.number(), 1);
      }
      owner.inbox_.pop_front();
      return false;
    }
    bool hold() const { return true; }

    DummyTransport& owner;
    Item& item = owner.inbox_.front();  // a deque: what arrives may append to it
    const wire::Segment& segment = item.segment;
    ConstBytes payload{};
  };

  /// Any one of those that are pending, and not each time.
  bool end_some() {
    if (pending_.empty() || fabric_.stalled || fabric_.random() % 4 == 0) return false;
    const std::size_t which = fabric_.random() % pending_.size();
    const Pending work = std::move(pending_[which]);
    pending_.erase(pending_.begin() + static_cast<std::ptrdiff_t>(which));
    ++fabric_.accesses;
    fabric_.out_of_order += which != 0;
    context_.messenger.rma().over(work.target->channel, work.ticket, perform(work));
    return true;
  }

  Status perform(const Pending& work) {
    const auto found = fabric_.regions.find(work.target->name());
    if (found == fabric_.regions.end()) return Status::access;
    const auto access = work.ticket.reads() ? protocol::Access::read : protocol::Access::write;
    const bool allowed =
        found->second->with(work.range, access, [&](std::byte* bytes, const protocol::MemoryRegion&) {
          if (work.ticket.reads()) {
            scatter(work.into, work.offset, {bytes, work.range.length});
          } else if (!work.copy.empty()) {
            std::copy(work.copy.begin(), work.copy.end(), bytes);
          } else {
            Gather{work.source, work.offset, work.range.length}.copy_to(bytes);
          }
        });
    return allowed ? Status::ok : Status::access;
  }

  const transport::TransportContext& context_;
  DummyFabric& fabric_;
  DummyDevice device_;
  os::Descriptor channel_{eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  std::size_t open_ = 0;  ///< peers that this transport holds
  transport::Arrivals arrivals_{context_.messenger, context_.peers, context_.admission};
  std::deque<Item> inbox_;
  std::vector<carrier::Token> acked_;
  std::vector<Pending> pending_;
};

}  // namespace cluster::test
