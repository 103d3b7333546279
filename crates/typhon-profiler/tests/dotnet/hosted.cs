// Managed code for a native program that hosts the runtime: collects on request.
using System;
using System.Runtime;

public static class Hosted
{
    static readonly byte[][] Survivors = new byte[64][];
    // A heap below 4 MB is never collected in the background.
    static readonly byte[] Large = new byte[16 << 20];

    // Called by the host; the first argument is unused. Returns the number of collections of the process so far.
    public static int Collect(IntPtr unused, int kind)
    {
        for (int i = 0; i < Survivors.Length; i++) Survivors[i] = new byte[i % 8 == 0 ? 100000 : 1000];
        switch (kind)
        {
            case 0: GC.Collect(0); break;
            case 1: GC.Collect(1); break;
            case 2: GC.Collect(2, GCCollectionMode.Forced, true); break;
            case 3:
                GCSettings.LargeObjectHeapCompactionMode = GCLargeObjectHeapCompactionMode.CompactOnce;
                GC.Collect(2, GCCollectionMode.Forced, true, true);
                break;
            // In the background, where the configuration allows it.
            case 4: GC.Collect(2, GCCollectionMode.Forced, false); break;
        }
        GC.KeepAlive(Large);
        return GC.CollectionCount(0);
    }
}
