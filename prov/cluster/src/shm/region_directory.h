// The registered memory of one domain, as its peers on this node see it (shm/region_layout.h says how they
// use it): the target's side of RMA without the target.
//
// Nothing is shared, and no socket is open, before the first region is offered.
#pragma once

#include <functional>
#include <list>
#include <mutex>
#include <utility>

#include "base/environment.h"
#include "carrier/region_offers.h"
#include "os/process_memory.h"
#include "shm/region_server.h"

namespace cluster::shm {

class RegionDirectory final : public carrier::RegionOffers {
 public:
  /// The keys of an endpoint, by its name.
  using KeysOf = std::function<seal::JobKeys(const SocketAddress&)>;
  static seal::JobKeys no_keys(const SocketAddress&) { return {}; }

  /// They outlive the directory.
  RegionDirectory(Clock& clock, Random& random, Log& log, KeysOf keys_of = no_keys)
      : random_(random), log_(log), keys_of_(std::move(keys_of)), users_(clock, log) {}

  void offer(std::uint64_t key, const carrier::OfferedRegion& region) override;
  void change(std::uint64_t key, const carrier::OfferedRegion& region) override;
  bool withdraw(std::uint64_t key) override;
  std::shared_ptr<void> serve(const SocketAddress& endpoint, bool reads_served, bool writes_served) override;

 private:
  struct Endpoint {
    SocketAddress name;
    bool reads_served = false;
    bool writes_served = false;
    std::unique_ptr<RegionServer> server = nullptr;
  };

  bool open();
  void start(Endpoint& endpoint);
  void end(std::list<Endpoint>::iterator endpoint);

  Random& random_;
  Log& log_;
  KeysOf keys_of_;
  RegionUsers users_;
  std::mutex mutex_;  ///< of all below; not held while uses are waited for
  bool opened_ = false;
  os::Descriptor file_;
  os::SharedMemory memory_;  ///< empty if there can be none
  os::GuardPage guard_;
  RegionEntries entries_;
  std::uint64_t generation_ = 0;  ///< of the region that was offered last
  std::list<Endpoint> endpoints_;
};

}  // namespace cluster::shm
