#include "shm/peer_regions.h"

#include <algorithm>
#include <cerrno>
#include <utility>

namespace cluster::shm {

std::uint32_t MappedRegions::find_other(const RegionEntries& entries, std::uint64_t key) const {
  const std::uint32_t number = entries.find(key, RegionEntry::kLive);
  const auto found = views_.find(number);
  return found != views_.end() && found->second.mapping ? number : RegionEntries::kEntries;
}

std::byte* MappedRegions::at(const RegionEntries& entries, std::uint32_t number, std::uint64_t offset,
                             std::size_t length) {
  if (number != last_number_ || entries.at(number).generation != last_->generation) select(entries, number);
  if (last_->mapping) return last_->mapping.at(offset, length);
  const bool looked_for = last_->uses >= kUsesBefore;
  return looked_for ? nullptr : use(entries, offset, length);
}

void MappedRegions::select(const RegionEntries& entries, std::uint32_t number) {
  View& view = views_[number];
  const std::uint64_t generation = entries.at(number).generation;
  if (view.generation != generation) {
    mappings_ -= static_cast<bool>(view.mapping);
    view = {.generation = generation, .key = entries.at(number).key};
  }
  last_ = &view;
  last_number_ = number;
}

/// Counts a use of a region that is not mapped, and maps the region at use number kUsesBefore. Returns null
/// if the region is still not mapped.
std::byte* MappedRegions::use(const RegionEntries& entries, std::uint64_t offset, std::size_t length) {
  if (++last_->uses < kUsesBefore) return nullptr;
  forget_closed(entries);
  const RegionEntry& entry = entries.at(last_number_);
  if (mappings_ == kMappingsMax || entry.length == kAllMemory) return nullptr;
  last_->mapping = os::PeerMapping::open(process_.number, process_.guard, entry.base, entry.length);
  if (!last_->mapping) return nullptr;
  ++mappings_;
  return last_->mapping.at(offset, length);
}

/// Forgets closed regions, except the last one, which is in use now.
void MappedRegions::forget_closed(const RegionEntries& entries) {
  std::erase_if(views_, [&](const auto& each) {
    const auto& [number, view] = each;
    const bool live = (entries.state(number).load(std::memory_order_acquire) & RegionEntry::kLive) != 0 &&
                      std::atomic_ref(entries.at(number).generation).load() == view.generation;
    if (live || &view == last_) return false;
    mappings_ -= static_cast<bool>(view.mapping);
    return true;
  });
}

void PeerRegions::wait_for_welcome(std::chrono::milliseconds limit) {
  if (greeting_.state() == HelloSender::State::waiting) {
    socket_.wait_for_message(limit);
    if (greeting_.advance(socket_) != HelloSender::State::sent) return take_welcome();
  }
  socket_.wait_for_message(limit);
  take_welcome();
}

void PeerRegions::take_welcome() {
  switch (greeting_.advance(socket_)) {
    case HelloSender::State::waiting: return;
    case HelloSender::State::failed:
      return give_up("the peer has not proved that it has the key of this process");
    case HelloSender::State::sent: break;
  }
  os::Descriptor file;
  switch (socket_.receive(as_bytes(&welcome_, sizeof welcome_), &file)) {
    case os::LocalSocket::Receipt::nothing: return;
    case os::LocalSocket::Receipt::end: return give_up("the peer has closed its endpoint");
    case os::LocalSocket::Receipt::misfit: return give_up("the peer's answer is malformed");
    case os::LocalSocket::Receipt::message: break;
  }
  if (welcome_.magic != RegionWelcome::kMagic) return give_up("the peer's answer is malformed");
  std::string reason;
  table_ = os::SharedMemory::map_to_read(file, RegionEntries::kBytes, reason);
  if (!table_) return give_up(reason.c_str());
  process_ = socket_.peer_process();
  const std::string unreached = try_copies();
  if (!unreached.empty()) return give_up(unreached.c_str());
  if (!os::PeerMapping::possible()) {
    log_.info(
        "cannot map the shared memory regions of %s: /proc does not show this PID namespace; the kernel "
        "copies their data instead",
        peer_.text().c_str());
  }
  entries_ = RegionEntries(table_.bytes());
  mapped_.set_process({process_, welcome_.guard});
  state_ = State::ready;
  socket_ = {};
}

std::string PeerRegions::try_copies() const {
  std::byte nothing{};
  const Bytes target(&nothing, 0);
  const ConstBytes source(&nothing, 0);
  errno = 0;
  const bool reached =
      process_ != 0 &&
      os::read_guarded(process_, welcome_.guard, 0, {&target, 1}, 0, 0) == os::GuardedCopy::whole &&
      os::write_guarded(process_, welcome_.guard, 0, {{&source, 1}, 0, 0}) == os::GuardedCopy::whole;
  return reached ? std::string() : os::why_unreached(process_, errno);
}

bool PeerRegions::ready() {
  if (state_ == State::waiting) [[unlikely]]
    take_welcome();
  return state_ == State::ready;
}

/// After this call every access returns unsuited.
void PeerRegions::give_up(const char* reason) {
  state_ = State::ended;
  window_.close();
  socket_ = {};
  leave();
  log_.info("cannot access the memory of %s directly: %s; the library of the peer serves remote accesses",
            peer_.text().c_str(), reason);
}

void PeerRegions::leave() {
  if (memory_) std::atomic_ref(page().ended).store(1, std::memory_order_release);
}

PeerRegions::Outcome PeerRegions::write(std::uint64_t key, std::uint64_t address, const Gather& source) {
  const auto piece = [&](std::size_t at, std::size_t part) {
    return Gather{source.slices, source.offset + at, part};
  };
  return access(
      key, address, source.length, kWrite,
      [&](std::byte* target, std::size_t at, std::size_t part) { gather_short(piece(at, part), target); },
      [&](std::uint64_t target, std::size_t at, std::size_t part) {
        return os::write_guarded(process_, welcome_.guard, target, piece(at, part));
      });
}

PeerRegions::Outcome PeerRegions::read(std::uint64_t key, std::uint64_t address,
                                       std::span<const Bytes> slices, std::size_t offset,
                                       std::size_t length) {
  return access(
      key, address, length, kRead,
      [&](const std::byte* source, std::size_t at, std::size_t part) {
        scatter(slices, offset + at, {source, part});
      },
      [&](std::uint64_t source, std::size_t at, std::size_t part) {
        return os::read_guarded(process_, welcome_.guard, source, slices, offset + at, part);
      });
}

/// Copies the data in pieces. This side marks the region as in use for one piece at a time, so a peer
/// that closes the region waits for one piece only. The
/// check of each piece also covers all following pieces, so an access beyond the end is denied before
/// anything is copied. A later piece is denied only if the peer has closed the region meanwhile, or has taken
/// the right away. `copy` copies memory that is mapped here, and `through_kernel` copies other memory.
template <typename Copy, typename Through>
PeerRegions::Outcome PeerRegions::access(std::uint64_t key, std::uint64_t address, std::size_t length,
                                         const Kind& kind, Copy&& copy, Through&& through_kernel) {
  if (!ready()) [[unlikely]]
    return Outcome::unsuited;
  std::size_t at = 0;
  do {
    const std::size_t part = std::min(length - at, kPieceBytes);
    const Outcome outcome = access_piece(
        key, address + at, length - at, part, kind, [&](std::byte* there) { copy(there, at, part); },
        [&](std::uint64_t there) { return through_kernel(there, at, part); });
    if (outcome != Outcome::done) return outcome;
    at += part;
  } while (at < length);
  return Outcome::done;
}

/// What judge() returns for a key that has no entry.
[[gnu::noinline]] PeerRegions::Outcome PeerRegions::judge_unlisted(std::uint64_t key) {
  const bool complete = entries_.unlisted().load(std::memory_order_relaxed) == 0;
  const bool closing = entries_.find(key, RegionEntry::kClosing) != RegionEntries::kEntries;
  return complete && !closing ? Outcome::denied : Outcome::unsuited;
}

/// Returns done if the entry with this number allows the access. The entry must be marked as in use. If the
/// key has no entry, `number` is kEntries. The function is inlined, because each access needs it.
[[gnu::always_inline]] inline PeerRegions::Outcome PeerRegions::judge(std::uint32_t number, std::uint64_t key,
                                                                      std::uint64_t address,
                                                                      std::size_t length, const Kind& kind) {
  if (number == RegionEntries::kEntries) [[unlikely]]
    return judge_unlisted(key);
  const RegionEntry& entry = entries_.at(number);
  const std::uint32_t state = entries_.state(number).load(std::memory_order_acquire);
  const bool still = (state & RegionEntry::kLive) != 0 && entry.key == key;
  if (!still) return Outcome::unsuited;
  if (std::atomic_ref(page().revoked).load(std::memory_order_relaxed) != 0) {
    give_up("the peer has closed its endpoint");
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
  const auto used = use(page(), number);
  const Outcome allowed = judge(number, key, address, length, kWrite);
  if (++judged_ % kJudgedPerUse == 0 && allowed == Outcome::done && length > 0)
    mapped(number, address, length);
  return allowed;
}

/// Copies the first `part` bytes of a range of `length` bytes. Denies the access unless the whole range is
/// inside the region.
template <typename Copy, typename Through>
PeerRegions::Outcome PeerRegions::access_piece(std::uint64_t key, std::uint64_t address, std::size_t length,
                                               std::size_t part, const Kind& kind, Copy&& copy,
                                               Through&& through_kernel) {
  const std::uint32_t number = entries_.find(key, RegionEntry::kLive);
  const auto used = use(page(), number);
  const Outcome allowed = judge(number, key, address, length, kind);
  if (allowed != Outcome::done || length == 0) return allowed;
  if (std::byte* const here = mapped(number, address, part)) {
    copy(here);
    return Outcome::done;
  }
  const RegionEntry& entry = entries_.at(number);
  switch (through_kernel(entry.base + (address - entry.start))) {
    case os::GuardedCopy::whole: return Outcome::done;
    case os::GuardedCopy::cut_short: return Outcome::unsuited;
    case os::GuardedCopy::no_process: give_up("the peer's process has ended"); return Outcome::unsuited;
  }
  return Outcome::unsuited;
}

/// Called by mapped() for bytes that at_last() does not find. Closes the window first, because at() may drop
/// the mapping that the window shows. If the bytes are mapped, opens the window to them, unless the target's
/// library executes all reads or all writes.
[[gnu::noinline]] std::byte* PeerRegions::mapped_elsewhere(std::uint32_t number, std::uint64_t address,
                                                           std::uint64_t offset, std::size_t length) {
  window_.close();
  std::byte* const here = mapped_.at(entries_, number, offset, length);
  if (here == nullptr) return nullptr;
  maps_some_ = true;
  if (welcome_.writes_served != 0 || welcome_.reads_served != 0) return here;
  std::uint64_t begin = offset;
  const Bytes ready = mapped_.ready_around(begin, length);
  window_.open(entries_, number, page(), address - (offset - begin), ready);
  return here;
}

PeerRegions::Outcome PeerRegions::store(std::uint64_t key, std::uint64_t address, ConstBytes source) {
  return access_mapped(key, address, source.size(), kWrite,
                       [&](std::byte* target) { copy_short(target, source.data(), source.size()); });
}

PeerRegions::Outcome PeerRegions::load(std::uint64_t key, std::uint64_t address, Bytes target) {
  return access_mapped(key, address, target.size(), kRead,
                       [&](const std::byte* source) { copy_short(target.data(), source, target.size()); });
}

/// Copies the data by loads or stores if the region is mapped here. Otherwise does nothing and returns
/// unsuited. The caller then tries another way of access, which also finds out whether the access is denied.
template <typename Copy>
[[gnu::always_inline]] inline PeerRegions::Outcome PeerRegions::access_mapped(std::uint64_t key,
                                                                              std::uint64_t address,
                                                                              std::size_t length,
                                                                              const Kind& kind, Copy&& copy) {
  const std::uint32_t number = mapped_.find(entries_, key);
  if (number == RegionEntries::kEntries || length == 0 || length > kPieceBytes || state_ != State::ready)
    return Outcome::unsuited;
  const auto used = use(page(), number);
  if (judge(number, key, address, length, kind) != Outcome::done) return Outcome::unsuited;
  std::byte* const here = mapped(number, address, length);
  if (here == nullptr) return Outcome::unsuited;
  copy(here);
  return Outcome::done;
}

PeerRegions::Outcome PeerRegions::put(const carrier::RemoteRange& to, const Gather& source,
                                      carrier::AccessTerms terms, carrier::AccessTicket ticket) {
  return put_by(*this, to, source, terms, ticket);
}

PeerRegions::Outcome PeerRegions::get(const carrier::RemoteRange& from, const Scatter& target,
                                      carrier::AccessTerms terms, carrier::AccessTicket) {
  return get_by(*this, from, target, terms);
}

std::unique_ptr<LocalMemory> PeerRegionConnector::connect(const SocketAddress& peer) {
  if (peer.empty() || peer.wildcard() || peer.port() == 0) return nullptr;
  std::string reason;
  const std::vector<KeyedName> names = keyed_names(region_socket_name(peer), keys_);
  KeyedSocket connection = connect_to(names, false, reason);
  if (!connection.socket) return nullptr;
  os::Descriptor file;
  os::SharedMemory page = os::SharedMemory::create(sizeof(UsePage), file, reason);
  const RegionHello hello;
  if (!page) return nullptr;
  HelloSender greeting(connection, as_bytes(&hello, sizeof hello), std::move(file), random_);
  if (!greeting.begin(connection.socket, reason)) return nullptr;
  auto regions = std::make_unique<PeerRegions>(peer, std::move(connection.socket), std::move(greeting),
                                               std::move(page), log_);
  regions->wait_for_welcome(welcome_max_);
  return regions;
}

}  // namespace cluster::shm
