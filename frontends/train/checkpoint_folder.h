// The checkpoints of one run: the last two, in files called by their steps. They are written by a thread
// of their own from a copy, while the run goes on.
#pragma once

#include <filesystem>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "frontends/train/checkpoint.h"
#include "runtime/core/descriptor.h"

namespace tilewright::train {

class CheckpointFolder {
 public:
  // Makes the folder where there is none, and removes what a run that was ended left half written.
  // shared: other processes of the same run may have it open, too: one that was rank 0 before, and is frozen.
  // Errors: kIo; kInvalid where another run uses it.
  static Result<std::unique_ptr<CheckpointFolder>> open(const std::filesystem::path& folder,
                                                        bool shared = false);
  ~CheckpointFolder();  // waits for what is being written
  CheckpointFolder(const CheckpointFolder&) = delete;
  CheckpointFolder& operator=(const CheckpointFolder&) = delete;

  std::filesystem::path file(int64_t step) const;
  std::vector<int64_t> steps() const;  // of which there are files, the newest first
  // The newest one that can be read and is finite; nothing where there is no file. `note` is told of those that are
  // passed over. Errors: there are files, and none is whole.
  Result<std::optional<Checkpoint>> newest(
      const std::function<void(const std::string&)>& note) const;
  // For a run that begins anew: newer files of an older one would be taken for its own.
  Status remove_all();

  // Begins to write it, after `first`; waits for the one before. When it is on the disk, of those before
  // it only the last is kept. Errors: of the one before.
  Status save(Checkpoint checkpoint, std::function<Status()> first);
  // Of what was saved so far, without waiting; and when all is on the disk.
  Status status();
  Status wait();

 private:
  CheckpointFolder(std::filesystem::path folder, Descriptor lock)
      : folder_(std::move(folder)), lock_(std::move(lock)) {}
  void keep_last_two(int64_t step) const;

  const std::filesystem::path folder_;
  const Descriptor lock_;  // of the folder, locked
  std::future<Status> writing_;
};

}  // namespace tilewright::train
