<?xml version="1.0" encoding="UTF-8"?>
<!-- Fields that are not final: the compiler then reads them where it runs, from the class that the app's build makes. -->
<xsl:stylesheet version="1.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform">
  <xsl:output method="text"/>
  <xsl:template match="/resources">
    <xsl:text>package callsign.android;&#10;&#10;public final class R {&#10;    public static final class string {&#10;</xsl:text>
    <xsl:for-each select="string">
      <xsl:value-of select="concat('        public static int ', @name, ';&#10;')"/>
    </xsl:for-each>
    <xsl:text>    }&#10;}&#10;</xsl:text>
  </xsl:template>
</xsl:stylesheet>
