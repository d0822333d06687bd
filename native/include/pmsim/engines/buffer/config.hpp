#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>

#include "pmsim/core/error.hpp"
#include "pmsim/engines/buffer/write_back.hpp"
#include "pmsim/engines/latches.hpp"
#include "pmsim/engines/options.hpp"
#include "pmsim/memory/region.hpp"

namespace pmsim::engines::buffer {

/// Where each page has its home: a place that follows from its id alone.
enum class Home : std::uint8_t { kPmem, kSsd };

/// How a page of a PMem home comes into its buffer, and back: the storage engines of Naveed Ul Mustafa et al.
/// (Implications of Non-Volatile Memory as Primary Storage for Database Management Systems, section IV), whose
/// case study is PostgreSQL on a file system for persistent memory.
enum class PageAccess : std::uint8_t {
  kMapped,      ///< a file is mapped, and pages are copied (SE1; HyMem's rivals)
  kSystemCall,  ///< read() and write(), which copy through a buffer of the kernel (unmodified)
  kRedirected,  ///< a file is mapped, and a buffer points to its page until it is changed (SE2)
};

/// Which buffer manager: the same class is HyMem's three-tier manager, its two rivals and spitfire.
struct BufferConfig {
  Home home = Home::kSsd;
  bool pmem_cache = true;  ///< PMem as a selective cache between DRAM and an SSD home (section 4)
  bool direct = false;     ///< pages may be used where they lie on PMem, and migrate by chance (spitfire)
  bool cache_line_grained = true;
  bool mini_pages = true;
  bool pointer_swizzling = true;
  PageAccess page_access = PageAccess::kMapped;
  std::uint32_t system_call_cycles = 0;  ///< of read() and write(), besides their copies
  bool kernel_buffer = true;             ///< these copy through it
  bool meta_on_ssd = false;              ///< journal, allocation map (EngineOptions)
  std::uint32_t page_bytes = 16384;
  std::uint64_t dram_bytes = 0;
  std::uint64_t pmem_bytes = 0;
  std::uint64_t ssd_bytes = 0;
  std::uint64_t admission_entries = 0;
  std::array<double, 4> migration{1, 1, 1, 1};  ///< Dr, Dw, Nr, Nw
  std::uint64_t seed = 1;
  Write page_write = Write::kStream;  ///< how lines of pages are written to PMem
  std::uint32_t journal_slots = 8;    ///< page images between two flushes of the SSD
  std::uint64_t spare_dram_bytes =
      0;                      ///< for the caller, at BufferManager::spare_dram(); no part of dram_bytes
  std::uint32_t threads = 1;  ///< that use it
  bool latched = false;       ///< and need latches
  bool count_fixes = true;    ///< in a frame's head; otherwise who replaces a page latches it
  bool debug_pages = false;   ///< debugging.hpp

  [[nodiscard]] std::uint32_t lines() const noexcept { return page_bytes / memory::kLineBytes; }
  [[nodiscard]] std::uint64_t pmem_frames() const noexcept { return pmem_bytes / page_bytes; }
  /// Ids that the home tier has room for.
  [[nodiscard]] std::uint64_t home_pages() const noexcept {
    return (home == Home::kPmem ? pmem_bytes : ssd_bytes) / page_bytes;
  }
  /// Pages that are loaded whole and have no mini pages: no frame of theirs is ever partly resident.
  [[nodiscard]] bool whole_pages() const noexcept {
    return !cache_line_grained && page_access != PageAccess::kRedirected;
  }

  /// Of the engines basic-nvm-bm, file-bm, redirect-bm, ssd-bm, three-tier and spitfire. Throws ConfigError.
  [[nodiscard]] static BufferConfig from(const EngineOptions& options) {
    BufferConfig config;
    const std::string& name = options.engine;
    config.page_bytes = options.page_bytes;
    config.dram_bytes = options.dram_bytes;
    config.pmem_bytes = options.pmem_bytes;
    config.ssd_bytes = options.ssd_bytes;
    config.cache_line_grained = options.cache_line_grained;
    config.mini_pages = options.mini_pages;
    config.pointer_swizzling = options.pointer_swizzling;
    config.migration = options.migration;
    config.seed = options.seed;
    config.latched = Latches::are_needed(options);
    config.threads = config.latched ? options.threads : 1;
    if (options.fixes != "counted" && options.fixes != "optimistic")
      throw ConfigError("fixes = '" + options.fixes + "': unknown; known: counted, optimistic");
    config.count_fixes = options.fixes == "counted";
    if (!config.count_fixes && options.threads > 1 && options.latches != "optimistic")
      throw ConfigError(
          "fixes = 'optimistic': readers find out by latches that a page has gone, so it needs "
          "latches = 'optimistic', not '" +
          options.latches + "'");
    // Of several threads one may look at a page while another is in the middle of changing its frame.
    config.debug_pages = options.debug_pages && !config.latched;
    config.page_write = page_write_named(options.page_write);
    config.meta_on_ssd = options.meta_on_ssd();
    config.system_call_cycles = options.system_call_cycles;
    if (options.system_call_copies != 1 && options.system_call_copies != 2)
      throw ConfigError(
          "system_call_copies: read() copies a page once, or twice through a buffer of the kernel");
    config.kernel_buffer = options.system_call_copies == 2;
    if (name == "file-bm")
      config.page_access = PageAccess::kSystemCall;
    else if (name == "redirect-bm")
      config.page_access = PageAccess::kRedirected;
    if (name == "basic-nvm-bm" || name == "ssd-bm" || config.page_access != PageAccess::kMapped) {
      config.home = name == "ssd-bm" ? Home::kSsd : Home::kPmem;
      config.pmem_cache = false;
      config.cache_line_grained = config.mini_pages = config.pointer_swizzling = false;
      (name == "ssd-bm" ? config.pmem_bytes : config.ssd_bytes) = 0;
    } else if (name == "spitfire") {
      config.direct = true;
    } else if (name != "three-tier") {
      throw ConfigError("engine: " + name + " has no buffer manager");
    }
    // Between two evictions of a page lie as many others as DRAM has frames: a smaller set would have forgotten
    // it.
    config.admission_entries = options.admission_entries != 0
                                   ? options.admission_entries
                                   : config.dram_bytes / config.page_bytes + config.pmem_frames() / 4 + 1;
    config.check();
    return config;
  }

  /// Throws ConfigError.
  void check() const {
    if (page_bytes < 4096 || page_bytes > 65536 || (page_bytes & (page_bytes - 1)) != 0)
      throw ConfigError("page_bytes: must be a power of two from 4 KiB to 64 KiB");
    if (mini_pages && page_bytes > 16384)
      throw ConfigError(
          "mini_pages: their slots name lines by one byte, so page_bytes can be 16 KiB at most; make "
          "page_bytes "
          "smaller or set mini_pages = false");
    if (mini_pages && !cache_line_grained)
      throw ConfigError(
          "mini_pages: need cache_line_grained = true, since they hold a part of the lines of a page");
    if (page_access != PageAccess::kMapped && (home != Home::kPmem || cache_line_grained))
      throw ConfigError("page_access: system calls and redirection are of whole pages whose home is PMem");
    if (home == Home::kPmem && pmem_cache)
      throw ConfigError("pmem_cache: a PMem that is home to all pages caches none");
    if (home_pages() == 0)
      throw CapacityError(home == Home::kPmem
                              ? "pmem_bytes: the engine keeps its pages on PMem; give it some"
                              : "ssd_bytes: the engine keeps its pages on the SSD; give it some");
    if (journal_slots == 0)
      throw ConfigError("journal_slots: a page written to the SSD needs one");
    if (pmem_cache && pmem_frames() == 0)
      throw CapacityError("pmem_bytes: the engine caches pages on PMem; give it room for at least one page");
    for (const double chance : migration) {
      if (!(chance >= 0 && chance <= 1))
        throw ConfigError("migration: Dr, Dw, Nr and Nw are probabilities, from 0 to 1");
    }
  }
};

}  // namespace pmsim::engines::buffer
