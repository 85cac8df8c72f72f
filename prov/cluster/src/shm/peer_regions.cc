#include "shm/peer_regions.h"

#include <algorithm>
#include <utility>

namespace cluster::shm {
namespace {

/// The progress thread of a peer answers within some hundred microseconds, on a machine that is very busy in
/// some ten milliseconds. Where it does not run at all (a stopped process), the first access takes so long, and
/// the answer is looked for with every later one.
constexpr std::chrono::milliseconds kWelcomeMax{1000};

/// The word of use is set exactly while one of these lives.
class Use {
 public:
  Use(UsePage& page, std::uint32_t entry) : word_(page.entry) {
    word_.store(entry + 1, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_seq_cst);  // between that and a look at the entry's state
  }
  ~Use() { word_.store(0, std::memory_order_release); }
  Use(const Use&) = delete;
  Use& operator=(const Use&) = delete;

 private:
  std::atomic_ref<std::uint32_t> word_;
};

}  // namespace

void PeerRegions::wait_for_welcome() {
  socket_.wait_for_message(kWelcomeMax);
  take_welcome();
}

void PeerRegions::take_welcome() {
  os::Descriptor file;
  switch (socket_.receive(as_bytes(&welcome_, sizeof welcome_), file)) {
    case os::LocalSocket::Receipt::nothing: return;
    case os::LocalSocket::Receipt::end: return end("it has closed its endpoint");
    case os::LocalSocket::Receipt::misfit: return end("its answer is malformed");
    case os::LocalSocket::Receipt::message: break;
  }
  if (welcome_.magic != RegionWelcome::kMagic) return end("its answer is malformed");
  std::string reason;
  table_ = os::SharedMemory::map_to_read(file, RegionEntries::kBytes, reason);
  if (!table_) return end(reason.c_str());
  process_ = socket_.peer_process();
  if (process_ == 0) return end("its process has no number in this PID namespace");
  std::byte nothing{};
  const Bytes target(&nothing, 0);
  const ConstBytes source(&nothing, 0);
  const bool reachable =
      os::read_guarded(process_, welcome_.guard, 0, {&target, 1}, 0, 0) == os::GuardedCopy::whole &&
      os::write_guarded(process_, welcome_.guard, 0, {{&source, 1}, 0, 0}) == os::GuardedCopy::whole;
  if (!reachable) return end("the kernel lets this process not reach its memory");
  entries_ = RegionEntries(table_.bytes());
  state_ = State::ready;
}

bool PeerRegions::ready() {
  if (state_ == State::waiting) [[unlikely]]
    take_welcome();
  return state_ == State::ready;
}

/// From now on every access is unsuited.
void PeerRegions::end(const char* reason) {
  state_ = State::ended;
  socket_ = {};
  log_.info("remote accesses to %s are served by its library: %s", peer_.text().c_str(), reason);
}

PeerRegions::Outcome PeerRegions::write(std::uint64_t key, std::uint64_t address, const Gather& source) {
  return access(
      key, address, source.length, kWrite, [&](std::uint64_t target, std::size_t at, std::size_t part) {
        return os::write_guarded(process_, welcome_.guard, target, {source.slices, source.offset + at, part});
      });
}

PeerRegions::Outcome PeerRegions::read(std::uint64_t key, std::uint64_t address,
                                       std::span<const Bytes> slices, std::size_t offset,
                                       std::size_t length) {
  return access(key, address, length, kRead, [&](std::uint64_t source, std::size_t at, std::size_t part) {
    return os::read_guarded(process_, welcome_.guard, source, slices, offset + at, part);
  });
}

/// In pieces, each of which is a use of its own: a close waits for one piece. Each is checked with all that
/// follows it, so that what is beyond the end is denied before anything is copied; a later piece is denied only
/// if the region has been closed meanwhile.
template <typename Copy>
PeerRegions::Outcome PeerRegions::access(std::uint64_t key, std::uint64_t address, std::size_t length,
                                         const Kind& kind, Copy&& copy) {
  if (!ready()) [[unlikely]]
    return Outcome::unsuited;
  std::size_t at = 0;
  do {
    const Outcome outcome =
        access_piece(key, address + at, length - at, kind, [&](std::uint64_t there, std::size_t part) {
          const os::GuardedCopy copied = copy(there, at, part);
          at += part;
          return copied;
        });
    if (outcome != Outcome::done) return outcome;
  } while (at < length);
  return Outcome::done;
}

/// Whether the entry of this number, which is in use, allows an access (done). kEntries: the key has none.
PeerRegions::Outcome PeerRegions::judge(std::uint32_t number, std::uint64_t key, std::uint64_t address,
                                        std::size_t length, const Kind& kind) {
  if (number == RegionEntries::kEntries) {
    const bool complete = entries_.unlisted().load(std::memory_order_relaxed) == 0;
    const bool closing = entries_.find(key, RegionEntry::kClosing) != RegionEntries::kEntries;
    return complete && !closing ? Outcome::denied : Outcome::unsuited;
  }
  const RegionEntry& entry = entries_.at(number);
  const std::uint32_t state = entries_.state(number).load(std::memory_order_acquire);
  const bool still = (state & RegionEntry::kLive) != 0 && entry.key == key;
  if (!still) return Outcome::unsuited;
  if (std::atomic_ref(page().revoked).load(std::memory_order_relaxed) != 0) {
    end("it has closed its endpoint");
    return Outcome::unsuited;
  }
  if (entry.length < length || address < entry.start || address - entry.start > entry.length - length ||
      (state & kind.allowed) == 0) {
    return Outcome::denied;
  }
  const bool all_served =
      kind.allowed == RegionEntry::kWritable ? welcome_.writes_served : welcome_.reads_served;
  return (state & kind.served) != 0 || all_served ? Outcome::unsuited : Outcome::done;
}

PeerRegions::Outcome PeerRegions::judge_write(std::uint64_t key, std::uint64_t address, std::size_t length) {
  if (!ready()) [[unlikely]]
    return Outcome::unsuited;
  const std::uint32_t number = entries_.find(key, RegionEntry::kLive);
  const Use use(page(), number);
  return judge(number, key, address, length, kWrite);
}

/// Copies the first kPieceBytes of a range that must be inside the region.
template <typename Copy>
PeerRegions::Outcome PeerRegions::access_piece(std::uint64_t key, std::uint64_t address, std::size_t length,
                                               const Kind& kind, Copy&& copy) {
  const std::uint32_t number = entries_.find(key, RegionEntry::kLive);
  const Use use(page(), number);
  const Outcome allowed = judge(number, key, address, length, kind);
  if (allowed != Outcome::done || length == 0) return allowed;
  const RegionEntry& entry = entries_.at(number);
  switch (copy(entry.base + (address - entry.start), std::min(length, kPieceBytes))) {
    case os::GuardedCopy::whole: return Outcome::done;
    case os::GuardedCopy::cut_short: return Outcome::unsuited;
    case os::GuardedCopy::no_process: end("its process has gone"); return Outcome::unsuited;
  }
  return Outcome::unsuited;
}

std::unique_ptr<carrier::RemoteRegions> PeerRegionConnector::connect(const SocketAddress& peer) {
  if (peer.empty() || peer.wildcard() || peer.port() == 0) return nullptr;
  std::string reason;
  os::LocalSocket socket = os::LocalSocket::connect(region_socket_name(peer), reason);
  if (!socket || !socket.same_user()) return nullptr;
  os::Descriptor file;
  os::SharedMemory page = os::SharedMemory::create(sizeof(UsePage), file, reason);
  const RegionHello hello;
  if (!page || !socket.send(as_bytes(&hello, sizeof hello), file, reason)) return nullptr;
  auto regions = std::make_unique<PeerRegions>(peer, std::move(socket), std::move(page), log_);
  regions->wait_for_welcome();
  return regions;
}

}  // namespace cluster::shm
