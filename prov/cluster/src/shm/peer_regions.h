// Reaches the regions of one peer on this node without the peer's help: the initiator's side of RMA without
// the target (shm/region_layout.h).
//
// If a region lies in memory that its owner shares, this side maps the region, too, after some uses, and
// copies by loads and stores (MappedRegions). For all other regions the kernel copies: a system call of one
// or two microseconds, several times the cost of a ring whose reader polls. So small writes take the ring as
// long as the peer polls (shm/local_memory.h).
#pragma once

#include <chrono>
#include <string>
#include <unordered_map>

#include "base/log.h"
#include "os/local_socket.h"
#include "os/peer_mapping.h"
#include "os/process_memory.h"
#include "os/shared_memory.h"
#include "shm/greeting.h"
#include "shm/local_memory.h"
#include "shm/region_layout.h"

namespace cluster::shm {

/// The regions of one peer that this process has mapped (os/peer_mapping.h), by the number of their entry in
/// the peer's table. Looking for a region's file costs some hundred microseconds, as much as fifty copies by
/// the kernel. So this side looks once per region, after kUsesBefore uses.
///
/// A mapping belongs to one registration, which the generation of the entry identifies: a region that is
/// closed and registered again may lie elsewhere. The mapping of a closed region keeps memory alive that the
/// peer may have freed. Such a mapping is dropped when its entry turns out to belong to another region, or
/// when the next region is mapped.
class MappedRegions {
 public:
  static constexpr std::uint32_t kUsesBefore = 16;
  static constexpr std::size_t kMappingsMax = 256;  ///< a process can have some ten thousand in all

  /// How the process of the peer is found.
  struct Process {
    int number = 0;
    os::GuardMark guard{};
  };

  void set_process(const Process& process) { process_ = process; }
  /// Returns the address of a part of an entry's region; the entry must be in use. Null if the region is not
  /// mapped. Each call counts as a use.
  std::byte* at(const RegionEntries& entries, std::uint32_t number, std::uint64_t offset,
                std::size_t length) {
    if (number == last_number_ && entries.at(number).generation == last_->generation &&
        last_->mapping.ready()) [[likely]]
      return last_->mapping.begin() + offset;
    return at_another(entries, number, offset, length);
  }
  /// Returns the entry of the key if its region is likely to be mapped, else kEntries. The entry need not be
  /// in use.
  std::uint32_t find(const RegionEntries& entries, std::uint64_t key) const {
    if (mappings_ == 0) return RegionEntries::kEntries;
    const bool last = last_->key == key && last_->mapping;
    return last ? last_number_ : find_other(entries, key);
  }

 private:
  struct View {
    std::uint64_t generation = 0;
    std::uint64_t key = 0;
    std::uint32_t uses = 0;  ///< so far; counting stops once the region's file was looked for
    os::PeerMapping mapping{};
  };

  std::uint32_t find_other(const RegionEntries& entries, std::uint64_t key) const;
  std::byte* at_another(const RegionEntries& entries, std::uint32_t number, std::uint64_t offset,
                        std::size_t length);
  void select(const RegionEntries& entries, std::uint32_t number);
  std::byte* use(const RegionEntries& entries, std::uint64_t offset, std::size_t length);
  void forget_closed(const RegionEntries& entries);

  Process process_;
  std::unordered_map<std::uint32_t, View> views_;  ///< nodes never move, so last_ stays valid
  std::uint32_t last_number_ = ~std::uint32_t{0};
  View* last_ = nullptr;  ///< the view of last_number_
  std::size_t mappings_ = 0;
};

class PeerRegions final : public LocalMemory {
 public:
  /// `greeting` has begun over `socket` and carries `page`. The log outlives this object.
  PeerRegions(const SocketAddress& peer, os::LocalSocket socket, HelloSender greeting, os::SharedMemory page,
              Log& log)
      : peer_(peer),
        socket_(std::move(socket)),
        greeting_(std::move(greeting)),
        memory_(std::move(page)),
        log_(log) {}

  PeerRegions(const PeerRegions&) = delete;
  PeerRegions& operator=(const PeerRegions&) = delete;
  ~PeerRegions() override { leave(); }

  Outcome put(const carrier::RemoteRange& to, const Gather& source, carrier::AccessTerms terms,
              carrier::AccessTicket ticket) override;
  Outcome get(const carrier::RemoteRange& from, const Scatter& target, carrier::AccessTerms terms,
              carrier::AccessTicket ticket) override;
  Outcome write(std::uint64_t key, std::uint64_t address, const Gather& source) override;
  Outcome judge_write(std::uint64_t key, std::uint64_t address, std::size_t length) override;
  Outcome store(std::uint64_t key, std::uint64_t address, ConstBytes source) override;
  Outcome load(std::uint64_t key, std::uint64_t address, Bytes target) override;
  Outcome read(std::uint64_t key, std::uint64_t address, std::span<const Bytes> slices, std::size_t offset,
               std::size_t length) override;

  /// Waits for each answer to the greeting, at most `limit`, since the peer's progress thread answers at once
  /// if it can. ready() takes an answer that comes later.
  void wait_for_welcome(std::chrono::milliseconds limit);

 private:
  /// Of this many writes that take the ring, one counts as a use: an exact count is not worth its
  /// instructions.
  static constexpr std::uint32_t kJudgedPerUse = 16;

  enum class State : std::uint8_t { waiting, ready, ended };

  /// The bits in an entry's state for one kind of access.
  struct Kind {
    std::uint32_t allowed;
    std::uint32_t served;
  };
  static constexpr Kind kWrite{RegionEntry::kWritable, RegionEntry::kWritesServed};
  static constexpr Kind kRead{RegionEntry::kReadable, RegionEntry::kReadsServed};

  UsePage& page() { return *reinterpret_cast<UsePage*>(memory_.bytes().data()); }
  bool ready();
  void take_welcome();
  void give_up(const char* reason);
  /// Tells the peer that this side uses nothing any more, so that the peer no longer waits for this page.
  void leave();
  /// Tests whether the kernel lets this process copy to and from the peer's memory. Returns an empty text if
  /// so, else the reason for the log.
  std::string try_copies() const;
  template <typename Copy, typename Through>
  Outcome access(std::uint64_t key, std::uint64_t address, std::size_t length, const Kind& kind, Copy&& copy,
                 Through&& through_kernel);
  Outcome judge(std::uint32_t number, std::uint64_t key, std::uint64_t address, std::size_t length,
                const Kind& kind);
  template <typename Copy, typename Through>
  Outcome access_piece(std::uint64_t key, std::uint64_t address, std::size_t length, std::size_t part,
                       const Kind& kind, Copy&& copy, Through&& through_kernel);
  template <typename Copy>
  Outcome access_mapped(std::uint64_t key, std::uint64_t address, std::size_t length, const Kind& kind,
                        Copy&& copy);
  std::byte* mapped(std::uint32_t number, std::uint64_t address, std::size_t length) {
    std::byte* const here = mapped_.at(entries_, number, address - entries_.at(number).start, length);
    if (here != nullptr) maps_some_ = true;
    return here;
  }

  const SocketAddress peer_;
  os::LocalSocket socket_;  ///< until the welcome has come
  HelloSender greeting_;
  os::SharedMemory memory_;  ///< holds the page
  Log& log_;
  State state_ = State::waiting;
  int process_ = 0;
  RegionWelcome welcome_{};
  os::SharedMemory table_;
  RegionEntries entries_;
  MappedRegions mapped_;
  std::uint32_t judged_ = 0;
};

class PeerRegionConnector final : public RegionConnector {
 public:
  /// The progress thread of a peer answers within some hundred microseconds. On a busy machine the answer
  /// comes later, and from a stopped process it does not come. Until then the peer's library serves accesses,
  /// and each access checks for the answer. A longer wait would hold up all other peers of the endpoint.
  static constexpr std::chrono::milliseconds kWelcomeMax{1};

  /// Each peer has one of `keys`; if `keys` is empty, peers have no key. `welcome_max`: how long connect()
  /// waits for each answer.
  PeerRegionConnector(Random& random, Log& log, seal::JobKeys keys = {},
                      std::chrono::milliseconds welcome_max = kWelcomeMax)
      : random_(random), log_(log), keys_(std::move(keys)), welcome_max_(welcome_max) {}
  std::unique_ptr<LocalMemory> connect(const SocketAddress& peer) override;

 private:
  Random& random_;
  Log& log_;
  const seal::JobKeys keys_;
  const std::chrono::milliseconds welcome_max_;
};

}  // namespace cluster::shm
